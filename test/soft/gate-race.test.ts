/** Links that are swapped while the gate opens: nothing outside is read or written, at any moment of the swap. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PenError } from '../../src/base/error.ts'
import { type GateBox, gateBox } from './gate-box.ts'

const SECONDS = 3

async function race(box: GateBox, act: () => Promise<void>): Promise<{ tries: number; swaps: number }> {
  const { workspace } = box.project
  const neighbour = Bun.spawn(
    [process.execPath, join(import.meta.dir, 'swap.ts'), workspace, String(SECONDS)],
    { stdout: 'pipe', stderr: 'inherit', env: {} },
  )
  let tries = 0
  while (neighbour.exitCode === null) {
    await act().catch(error => {
      if (!(error instanceof PenError)) throw error
    })
    // So that its end is seen.
    if (tries++ % 50 === 0) await Bun.sleep(0)
  }
  return { tries, swaps: Number(await new Response(neighbour.stdout).text()) }
}

async function swapped(): Promise<GateBox & { readonly outside: string }> {
  const box = await gateBox({})
  const outside = join(box.project.home, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'file'), 'SECRET')
  box.project.write('a/file', 'fine')
  symlinkSync(outside, join(box.project.workspace, 'link'))
  return Object.assign(box, { outside })
}

test('reading while a directory is swapped for a link gives the workspace’s file or nothing', async () => {
  using box = await swapped()
  const seen = new Set<string>()
  const { tries, swaps } = await race(box, async () => {
    const { bytes } = await box.gate.read('a/file')
    seen.add(Buffer.from(bytes).toString())
  })
  expect(tries).toBeGreaterThan(100)
  expect(swaps).toBeGreaterThan(100)
  expect([...seen]).toEqual(['fine'])
  expect(new Set(box.of('file-denied').map(({ reason }) => reason))).toContain('not-granted')
}, 30_000)

test('writing, listing and deleting while a directory is swapped for a link touches nothing outside', async () => {
  using box = await swapped()
  let n = 0
  let wrote = 0
  const { swaps } = await race(box, async () => {
    const name = `a/new${n++ % 20}`
    await box.gate.write(name, 'x').then(() => wrote++)
    const { entries } = await box.gate.list('a', 100)
    if (entries.some(entry => entry.size === 6)) throw new Error('the outside was listed')
    await box.gate.delete(name)
    await box.gate.delete('a/nothing-there')
  })
  expect(swaps).toBeGreaterThan(100)
  expect(wrote).toBeGreaterThan(0)
  expect(readdirSync(box.outside)).toEqual(['file'])
  expect(existsSync(join(box.outside, 'file'))).toBe(true)
}, 30_000)
