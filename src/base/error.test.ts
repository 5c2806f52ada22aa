import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ERROR_CODES, errnoOf, knownError, PenError, showPlace } from './error.ts'

test('the documentation lists every error code with its exit code, and no other', () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/exit-codes.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| ([0-9]+) \|/gm)].map(([, code, exit]) => [
    code,
    Number(exit),
  ])
  expect(Object.fromEntries(rows)).toEqual(ERROR_CODES)
})

test('an error carries code, place, fix, cause and exit code', () => {
  const cause = new Error('below')
  const at = { file: 'config.json', line: 3, column: 7 }
  const error = new PenError('CONFIG_VALUE', { what: 'no', at, hint: 'yes', cause })
  expect([error.message, error.code, error.hint, error.cause, error.exitCode]).toEqual([
    'no',
    'CONFIG_VALUE',
    'yes',
    cause,
    2,
  ])
  expect(showPlace(at)).toBe('config.json:3:7')
  expect(showPlace('--allow')).toBe('--allow')
})

test('only system errors have an errno', () => {
  expect(errnoOf(Object.assign(new Error('x'), { code: 'ENOENT' }))).toBe('ENOENT')
  for (const other of [new PenError('USAGE', { what: 'x' }), new Error('x'), { code: 'ENOENT' }, undefined])
    expect(errnoOf(other)).toBeUndefined()
  expect(errnoOf(Object.assign(new Error('x'), { code: 'ERR_INVALID_ARG_VALUE' }))).toBeUndefined()
})

test('a full or read-only disk gets a clear error, and other errors stay', () => {
  const full = Object.assign(new Error('write'), { code: 'ENOSPC', path: '/home/u/.pen/x' })
  expect(knownError(full)).toMatchObject({ code: 'STATE', at: '/home/u/.pen/x', cause: full })
  expect(knownError(Object.assign(new Error('open'), { code: 'EROFS' }))).toMatchObject({ code: 'STATE' })
  for (const other of [
    Object.assign(new Error('open'), { code: 'EPERM' }),
    new PenError('GAP', { what: 'no' }),
    7,
  ])
    expect(knownError(other)).toBe(other)
})
