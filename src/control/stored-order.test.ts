import { afterEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTimeOf } from '../base/kernel/processes.ts'
import { dropOrder, readStoredOrder, storeOrder } from './stored-order.ts'
import { describeOrder, hasNoFlags, mergeOrders } from './supervisor-order.ts'

const PLAIN = { id: 'p-1', flags: {}, offline: false, allowUserExpansion: false }
const STRICT = {
  ...PLAIN,
  flags: {
    profile: 'strict',
    files: { deny: ['a', "b'c"] },
    limits: { disk: '50MiB', pids: 9 },
    env: { TOKEN: 'secret' },
  },
  offline: true,
}

const dir = mkdtempSync(join(tmpdir(), 'pen-stored-'))
const file = join(dir, 'started.json')
afterEach(() => rmSync(file, { force: true }))

describe('the order of a start', () => {
  test('is stored for this user alone, read back unchanged, and removed by dropOrder', () => {
    expect(readStoredOrder(dir)).toBeUndefined()
    const stored = { order: { ...STRICT, agent: 'codex' }, backend: 'podman', owner: null }
    storeOrder(dir, stored)
    expect(readStoredOrder(dir)).toEqual(stored)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    dropOrder(dir)
    dropOrder(dir)
    expect(readStoredOrder(dir)).toBeUndefined()
  })

  test('is restored when the start fails', () => {
    const first = { order: STRICT, backend: 'process', owner: null }
    storeOrder(dir, first)()
    expect(readdirSync(dir)).toEqual([])
    storeOrder(dir, first)
    storeOrder(dir, { ...first, order: PLAIN })()
    expect(readStoredOrder(dir)).toEqual(first)
  })

  test('is void when the program that owns the sandbox has ended', () => {
    const owner = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
    storeOrder(dir, { order: STRICT, backend: 'process', owner })
    expect(readStoredOrder(dir)?.owner).toEqual(owner)
    storeOrder(dir, { order: STRICT, backend: 'process', owner: { ...owner, startTime: '1' } })
    expect(readStoredOrder(dir)).toBeUndefined()
  })

  test.each(['', 'x', 'null', '{"version":1}', '{"version":2,"order":{},"backend":"process","owner":null}'])(
    'is an error when the file is unreadable: %p',
    text => {
      writeFileSync(file, text, { mode: 0o600 })
      expect(() => readStoredOrder(dir)).toThrow('could be weaker')
    },
  )

  test('is an error when a directory is there, and dropOrder removes it', () => {
    mkdirSync(file)
    expect(() => readStoredOrder(dir)).toThrow('could be weaker')
    dropOrder(dir)
    expect(readStoredOrder(dir)).toBeUndefined()
  })
})

describe('flags that are added to an order', () => {
  test('replace single values, extend lists and remove nothing', () => {
    const more = { ...PLAIN, flags: { files: { deny: ['a', 'd'] }, limits: { disk: '1GiB' } } }
    expect(mergeOrders(STRICT, more)).toEqual({
      ...STRICT,
      flags: {
        ...STRICT.flags,
        files: { deny: ['a', "b'c", 'd'] },
        limits: { disk: '1GiB', pids: 9 },
      },
    })
    expect(mergeOrders(STRICT, PLAIN)).toEqual(STRICT)
    expect(mergeOrders(PLAIN, STRICT)).toEqual(STRICT)
    expect(mergeOrders({ ...PLAIN, agent: 'codex' }, PLAIN)).toEqual({ ...PLAIN, agent: 'codex' })
    expect([hasNoFlags(PLAIN), hasNoFlags(STRICT), hasNoFlags({ ...PLAIN, agent: 'codex' })]).toEqual([
      true,
      false,
      false,
    ])
  })
})

test('a host that is allowed after --offline is refused, and other flags are not', () => {
  for (const network of [{ http: ['a.test'] }, { tcp: ['a.test:22'] }, { groups: ['npm'] }, { ask: 'hold' }])
    expect(() => mergeOrders(STRICT, { ...PLAIN, flags: { network } })).toThrow('has no effect')
  const allowed = { ...PLAIN, flags: { network: { http: ['a.test'] } } }
  expect(mergeOrders(PLAIN, allowed)).toEqual(allowed)
  expect(mergeOrders(allowed, { ...PLAIN, offline: true })).toEqual({ ...allowed, offline: true })
  expect(mergeOrders(STRICT, { ...PLAIN, flags: { limits: { pids: 3 } } }).offline).toBe(true)
})

test('an order is described by all its flags, without values of variables', () => {
  expect(describeOrder({ ...STRICT, agent: 'codex', flags: { ...STRICT.flags, tools: {} } })).toBe(
    `--offline --profile strict --deny a --deny 'b'"'"'c' --limit disk=50MiB --limit pids=9 --env TOKEN --agent codex (policy: tools)`,
  )
})
