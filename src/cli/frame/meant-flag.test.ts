import { expect, test } from 'bun:test'
import { verb as run } from '../verbs/run/run.ts'
import { verb as stop } from '../verbs/sandbox/stop.ts'
import { meantFlag, meantGlobalFlag } from './meant-flag.ts'

test.each([
  ['timeout', '--wall'],
  ['memory', '--limit memory=2GiB'],
  ['offlin', '--offline'],
  ['verison', 'pen --version'],
  ['hlep', '--help'],
  ['dry-run', '--dry-run-policy'],
  ['profile', '--profile'],
])('pen run --%s was meant as %s', (name, meant) => expect(meantFlag(name, run.flags)).toBe(meant))

test('a flag of another tool is suggested only if the verb has its counterpart', () => {
  expect(meantFlag('timeout', stop.flags)).toBeUndefined()
  expect(meantFlag('xyzzy', run.flags)).toBeUndefined()
  expect(meantFlag('q', run.flags)).toBeUndefined()
})

test('before a verb only the flags of pen itself are meant', () => {
  expect(meantGlobalFlag('--verison')).toBe('pen --version')
  expect(meantGlobalFlag('--hepl')).toBe('pen --help')
  expect(meantGlobalFlag('--offline')).toBeUndefined()
})
