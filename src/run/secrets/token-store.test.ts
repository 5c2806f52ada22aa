import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import { TokenStore } from './token-store.ts'

const authority = newAuthority('tokens')
const TOKEN = 'sk-ant-oat01-0123456789abcdefghij'
let stateDir = ''
const at = (variable: string, ...names: string[]) => {
  const secrets = names.map(name => ({ name, from: { kind: 'env', variable } as const }))
  return new TokenStore(stateDir, secrets, text => authority.randomFor(text))
}
const open = (...names: string[]) => at('SERVER', ...names)
const directory = () => join(stateDir, 'tokens/A')

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'pen-tokens-'))
})
afterEach(() => rmSync(stateDir, { recursive: true }))

test('a token is known to another sandbox of the project and to the next run, and only to its secret', () => {
  const [one, other] = [open('A'), open('A', 'B')]
  expect(other.all()).toEqual([])
  const placeholder = one.keep('A', TOKEN)
  expect(placeholder).toMatch(/^sk-ant-oat01-\d{10}[a-z]{10}$/)
  expect(one.keep('A', TOKEN)).toBe(placeholder)
  expect(other.all()).toEqual([{ name: 'A', value: TOKEN, placeholder: placeholder ?? '' }])
  expect(open('B').all()).toEqual([])
})

test('a secret with other sign-in servers has none of the tokens, and another name keeps none', () => {
  open('A').keep('A', TOKEN)
  expect(at('OTHER', 'A').all()).toEqual([])
  expect(open('A').all()).toHaveLength(1)
  expect(open('A').keep('B', `${TOKEN}1`)).toBeUndefined()
})

test('a token is in a file that no other user can read', () => {
  open('A').keep('A', TOKEN)
  expect(statSync(directory()).mode & 0o777).toBe(0o700)
  for (const name of readdirSync(directory()))
    expect(statSync(join(directory(), name)).mode & 0o777).toBe(0o600)
})

test('only the newest are kept', async () => {
  const store = open('A')
  for (let i = 10; i < 40; i++) {
    store.keep('A', `${TOKEN}${i}`)
    await Bun.sleep(2)
  }
  expect(store.all()).toHaveLength(16)
  expect(store.all().at(-1)?.value).toBe(`${TOKEN}39`)
})

test('a token that is used stays, however many newer ones come, and dropped ones are remembered', async () => {
  const store = open('A')
  const refresh = store.keep('A', `${TOKEN}refresh`)
  for (let i = 10; i < 40; i++) {
    store.keep('A', `${TOKEN}${i}`)
    await Bun.sleep(2)
    if (i % 5 === 0) expect(store.keep('A', `${TOKEN}refresh`)).toBe(refresh)
    await Bun.sleep(2)
  }
  expect(store.all()).toHaveLength(16)
  expect(store.all().map(({ value }) => value)).toContain(`${TOKEN}refresh`)
  expect(store.seen()).toHaveLength(31)
})

test('no program can push tokens out of the memory: too many on one day are not taken', () => {
  const store = open('A')
  const kept = Array.from({ length: 300 }, (_, i) => store.keep('A', `${TOKEN}${1000 + i}`))
  expect(kept.filter(placeholder => placeholder !== undefined)).toHaveLength(256)
  expect(store.keep('A', `${TOKEN}1000`)).toBe(kept[0])
  expect(store.seen()).toHaveLength(256)
})

test('a removed sign-in has no tokens, and the next one is kept', () => {
  const store = open('A')
  const placeholder = store.keep('A', TOKEN)
  rmSync(directory(), { recursive: true })
  expect(store.all()).toEqual([])
  expect(store.seen()).toHaveLength(1)
  expect(store.keep('A', TOKEN)).toBe(placeholder)
  expect(open('A').all()).toHaveLength(1)
})

test('a damaged file, a link and a token that is too simple are left out', () => {
  const store = open('A')
  expect(store.keep('A', '----------------')).toBeUndefined()
  store.keep('A', TOKEN)
  const name = (digit: string): string => join(directory(), digit.repeat(32))
  writeFileSync(name('a'), '{"value":', { mode: 0o600 })
  writeFileSync(name('b'), '{"value":1,"placeholder":"x","servers":"the variable SERVER"}', { mode: 0o600 })
  writeFileSync(join(directory(), 'other'), '{}')
  symlinkSync('/etc/passwd', name('c'))
  expect(store.all().map(({ value }) => value)).toEqual([TOKEN])
})
