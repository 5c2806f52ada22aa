import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTimeOf } from '../limits/cgroup-name.ts'
import { orderWords } from './order-words.ts'
import { dropOrder, readStoredOrder, storeOrder } from './stored-order.ts'
import { isPlain, onTop } from './supervisor-order.ts'

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
  test('is read as it was stored, by nobody else, and is gone when it is dropped', () => {
    expect(readStoredOrder(dir)).toBeUndefined()
    const stored = { order: { ...STRICT, agent: 'codex' }, backend: 'podman', owner: null }
    storeOrder(dir, stored)
    expect(readStoredOrder(dir)).toEqual(stored)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    dropOrder(dir)
    dropOrder(dir)
    expect(readStoredOrder(dir)).toBeUndefined()
  })

  test('is put back where the start did not come about', () => {
    const first = { order: STRICT, backend: 'process', owner: null }
    storeOrder(dir, first)()
    expect(readdirSync(dir)).toEqual([])
    storeOrder(dir, first)
    storeOrder(dir, { ...first, order: PLAIN })()
    expect(readStoredOrder(dir)).toEqual(first)
  })

  test('ends with the program whose sandbox it is', () => {
    const owner = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
    storeOrder(dir, { order: STRICT, backend: 'process', owner })
    expect(readStoredOrder(dir)?.owner).toEqual(owner)
    storeOrder(dir, { order: STRICT, backend: 'process', owner: { ...owner, startTime: '1' } })
    expect(readStoredOrder(dir)).toBeUndefined()
  })

  test.each(['', 'x', 'null', '{"version":1}', '{"version":2,"order":{},"backend":"process","owner":null}'])(
    'that cannot be read is no order: %p',
    text => {
      writeFileSync(file, text, { mode: 0o600 })
      expect(() => readStoredOrder(dir)).toThrow('could be weaker')
    },
  )
})

describe('flags on top of others', () => {
  test('replace the same value, lengthen a list, and take nothing away', () => {
    const more = { ...PLAIN, flags: { files: { deny: ['a', 'd'] }, limits: { disk: '1GiB' } } }
    expect(onTop(STRICT, more)).toEqual({
      ...STRICT,
      flags: {
        ...STRICT.flags,
        files: { deny: ['a', "b'c", 'd'] },
        limits: { disk: '1GiB', pids: 9 },
      },
    })
    expect(onTop(STRICT, PLAIN)).toEqual(STRICT)
    expect(onTop(PLAIN, STRICT)).toEqual(STRICT)
    expect(onTop({ ...PLAIN, agent: 'codex' }, PLAIN)).toEqual({ ...PLAIN, agent: 'codex' })
    expect([isPlain(PLAIN), isPlain(STRICT), isPlain({ ...PLAIN, agent: 'codex' })]).toEqual([
      true,
      false,
      false,
    ])
  })
})

test('an order in words shows every flag, and no value of a variable', () => {
  expect(orderWords({ ...STRICT, agent: 'codex', flags: { ...STRICT.flags, tools: {} } })).toBe(
    "--offline --profile strict --deny a --deny 'b'\\''c' --limit disk=50MiB --limit pids=9 --env TOKEN --agent codex (policy: tools)",
  )
})
