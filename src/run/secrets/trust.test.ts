import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { withTrust } from './trust.ts'

let stateDir = ''
const volume = () => join(stateDir, 'volumes/NSS')
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'pen-trust-'))
})
afterEach(() => rmSync(stateDir, { recursive: true }))

function stepsFor(name: string, steps: readonly Step[] = []): readonly Step[] {
  const plan = { steps, env: [] } as unknown as Plan
  const volumes = join(stateDir, 'volumes') as HostPath
  const authority = newAuthority(name)
  const own = new Set<string>()
  return withTrust(plan, { authority, stateDir, volumes, hostBundle: undefined, isImage: true, own }).steps
}

const made = (): string[] =>
  readdirSync(join(stateDir, 'trust'))
    .sort()
    .map(name => `${name} ${lstatSync(join(stateDir, 'trust', name), { bigint: true }).mtimeNs}`)

test('files of trust are made once for an authority, and again for another', () => {
  const authority = newAuthority('one')
  const plan = { steps: [], env: [] } as unknown as Plan
  const request = { authority, stateDir, volumes: join(stateDir, 'volumes') as HostPath }
  const more = { hostBundle: undefined, isImage: true, own: new Set<string>() }
  withTrust(plan, { ...request, ...more })
  const before = made()
  withTrust(plan, { ...request, ...more })
  expect(made()).toEqual(before)
  withTrust(plan, { ...request, ...more, authority: newAuthority('two') })
  expect(made().filter(line => before.includes(line))).toEqual([])
  expect(readFileSync(join(stateDir, 'trust/bundle.pem'), 'latin1')).not.toContain(authority.certificate)
})

test('what a sandbox put in place of the database of NSS is neither followed nor kept', () => {
  mkdirSync(volume(), { recursive: true })
  const outside = join(stateDir, 'outside')
  writeFileSync(outside, 'outside')
  symlinkSync(outside, join(volume(), 'cert9.db'))
  stepsFor('one')
  expect(readFileSync(outside, 'utf8')).toBe('outside')
  const database = join(volume(), 'cert9.db')
  expect(lstatSync(database).isFile()).toBe(true)
  expect(readFileSync(database, 'latin1')).toStartWith('SQLite format 3')
  writeFileSync(database, 'hostile')
  stepsFor('two')
  expect(readFileSync(database, 'latin1')).toStartWith('SQLite format 3')
  rmSync(database)
  mkdirSync(database)
  expect(() => stepsFor('three')).not.toThrow()
})

test('a mount of the user’s own at ~/.pki stays', () => {
  const own = { op: 'bind', from: '/x', at: '/home/agent/.pki/nssdb', mode: 'ro', why: 'mounted' } as Step
  const [at] = [own].map(({ at }) => at)
  expect(stepsFor('one').filter(step => step.at === at)).toHaveLength(1)
  expect(stepsFor('one', [own]).filter(step => step.at === at)).toEqual([own])
})
