/** A guest is restored from a snapshot that knows no project. */
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Ran } from '../conformance/launcher.ts'
import { onMachine } from './machine.ts'
import { CANARY, files, here, run, takeSnapshot, way } from './snapshots.ts'

onMachine('P20 the first start takes a snapshot, and the next one is restored from it', takeSnapshot, 120_000)

onMachine('P1 a snapshot has nothing of the project: no name, no file, no variable', () => {
  const found = files().filter(path => /\/(ram|state|manifest\.json)$/.test(path))
  expect(found.length).toBe(3)
  for (const path of found)
    for (const secret of [CANARY, here().project, here().root.split('/').at(-1) ?? ''])
      expect([path, readFileSync(path).includes(secret)]).toEqual([path, false])
})

onMachine(
  'P20 restored guests have the time of the host, and random numbers of their own',
  async () => {
    const ran: Ran[] = []
    for (let i = 0; i < 2; i++) {
      const before = Date.now()
      const guest = await run()
      expect(way(guest)).toEqual(['guest restored'])
      expect(Number(guest.stdout.split('\n')[0])).toBeWithin(before - 100, Date.now() + 100)
      ran.push(guest)
    }
    const [[, randomA, bootA], [, randomB, bootB]] = ran.map(({ stdout }) => stdout.split('\n')) as [
      string[],
      string[],
    ]
    expect([randomA === randomB, bootA === bootB]).toEqual([false, false])
    expect(ran.map(({ stdout }) => stdout.endsWith(CANARY))).toEqual([true, true])
  },
  120_000,
)
