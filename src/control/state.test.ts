import { afterEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tryLock } from '../config/lock.ts'
import {
  becomeSupervisor,
  presenceOf,
  readRecord,
  type SupervisorRecord,
  signalSupervisor,
  statePaths,
  withChangeLock,
  writeRecord,
} from './state.ts'

const made: string[] = []
afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true })
})

function stateDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'pen-store-'))
  made.push(dir)
  return dir
}

const RECORD: SupervisorRecord = {
  pid: 4242,
  run: 'run-1',
  workspace: '/project',
  backend: 'process',
  isolation: 'process',
  image: null,
  since: '2026-01-02T03:04:05.000Z',
}

describe('a supervisor', () => {
  test('is present while it holds its lock, with its pid and its record', async () => {
    const dir = stateDir()
    expect(await presenceOf(dir)).toEqual({ is: 'absent' })
    const lock = await becomeSupervisor(dir)
    expect(await presenceOf(dir)).toMatchObject({
      is: 'present',
      owner: { pid: process.pid },
      record: undefined,
    })
    writeRecord(dir, RECORD)
    expect(await presenceOf(dir)).toMatchObject({ is: 'present', record: { run: 'run-1', pid: 4242 } })
    lock.release()
    expect(await presenceOf(dir)).toEqual({ is: 'absent' })
  })

  test('that died leaves files, which the next look removes unless repair is off', async () => {
    const dir = stateDir()
    const { record, control, lock } = statePaths(dir)
    writeRecord(dir, RECORD)
    writeFileSync(control, '')
    // A reused pid: here that of this process.
    writeFileSync(lock, `${process.pid} 1\n`)
    expect(await presenceOf(dir, { repair: false })).toEqual({ is: 'absent' })
    expect([record, control].map(existsSync)).toEqual([true, true])
    expect(await presenceOf(dir)).toEqual({ is: 'absent' })
    expect([record, control, lock].map(existsSync)).toEqual([false, false, false])
  })

  test('gets a signal only if its pid was not reused', () => {
    expect(signalSupervisor({ pid: process.pid, startTime: '1' }, 'SIGKILL')).toBe(false)
    expect(signalSupervisor(undefined, 'SIGKILL')).toBe(false)
  })
})

describe('a record', () => {
  test.each(['', '{', 'null', '[]', '{"version":2}', JSON.stringify({ version: 1, ...RECORD, pid: 'x' })])(
    'that contains %j is invalid',
    text => {
      const dir = stateDir()
      writeFileSync(statePaths(dir).record, text)
      expect(readRecord(dir)).toBeUndefined()
    },
  )

  test('is read back unchanged', () => {
    const dir = stateDir()
    writeRecord(dir, RECORD)
    expect(readRecord(dir)).toMatchObject(RECORD)
  })
})

describe('changes of a sandbox', () => {
  test('run one at a time, and a failed change releases the lock', async () => {
    const dir = stateDir()
    const seen: string[] = []
    const work = (name: string, fails = false) =>
      withChangeLock(dir, async () => {
        seen.push(`${name} begins`)
        await Bun.sleep(15)
        seen.push(`${name} ends`)
        if (fails) throw new Error(name)
      })
    const all = await Promise.allSettled([work('a'), work('b', true), work('c')])
    expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(1)
    for (let i = 0; i < seen.length; i += 2)
      expect(seen[i + 1]).toBe(seen[i]?.replace('begins', 'ends') ?? '')
    const lock = tryLock(statePaths(dir).changing)
    expect(lock).toBeDefined()
    lock?.release()
  })

  test('are refused where other users can write', () => {
    const dir = stateDir()
    chmodSync(dir, 0o777)
    expect(withChangeLock(dir, async () => undefined)).rejects.toThrow('other users can write')
  })
})
