import { afterAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SecretSource } from '../../policy/network/secret.ts'
import { readSecret, secretValues } from './secret-values.ts'

const directory = mkdtempSync(join(tmpdir(), 'pen-secret-'))
afterAll(() => rmSync(directory, { recursive: true }))
const VALUE = 'tok_0123456789abcdef'
const file = join(directory, 'token')
writeFileSync(file, `${VALUE}\n`, { mode: 0o600 })

const secret = (from: SecretSource) => ({ name: 'TOKEN', from, to: [], headers: [], parameters: [] })
const PATH = '/usr/bin:/bin'
const isReplaceable = (program: string): boolean => program.startsWith(directory)
const read = async (from: SecretSource, env = {}) =>
  (await readSecret(secret(from), { env: { PATH, ...env }, isReplaceable })).map(({ value }) => value).join()

test('a value comes from a variable, a file or a command, without its last line end', async () => {
  expect(await read({ kind: 'env', variable: 'X' }, { X: VALUE })).toBe(VALUE)
  expect(await read({ kind: 'file', path: file })).toBe(VALUE)
  expect(await read({ kind: 'command', argv: ['cat', file] })).toBe(VALUE)
  const [made] = await secretValues(
    [secret({ kind: 'file', path: file })],
    { env: {}, isReplaceable },
    () => () => 7,
  )
  expect(made).toMatchObject({ name: 'TOKEN', value: VALUE })
  expect(made?.placeholder).toHaveLength(VALUE.length)
})

test('a value that could break out of a header, is empty or short is refused, and never shown', async () => {
  for (const value of ['abc\r\nX-Evil: 1234', 'with space 12345', 'ünïcödé-123456', '', 'short'])
    await expect(read({ kind: 'env', variable: 'X' }, { X: value })).rejects.toThrow(/^(?!.*Evil).*TOKEN/)
})

test('a source that fails says which, and how to fix it', async () => {
  await expect(read({ kind: 'env', variable: 'X' })).rejects.toMatchObject({ hint: 'export X=…' })
  await expect(read({ kind: 'file', path: join(directory, 'none') })).rejects.toThrow('does not exist')
  await expect(read({ kind: 'command', argv: ['false'] })).rejects.toThrow('exit code 1')
  await expect(read({ kind: 'command', argv: ['no-such-program'] })).rejects.toThrow('could not be run')
})

test('a program that the sandbox can write is not run, and the next one in PATH is', async () => {
  writeFileSync(join(directory, 'cat'), `#!/bin/sh\ntouch ${directory}/ran; echo ${VALUE}\n`, { mode: 0o755 })
  const planted = { PATH: `${directory}:${PATH}` }
  expect(await read({ kind: 'command', argv: ['cat', file] }, planted)).toBe(VALUE)
  await expect(read({ kind: 'command', argv: [join(directory, 'cat')] })).rejects.toThrow('can write')
  await expect(read({ kind: 'command', argv: ['cat'] }, { PATH: directory })).rejects.toThrow('can write')
  expect(existsSync(join(directory, 'ran'))).toBe(false)
})

test('a file that others can write is no source', async () => {
  chmodSync(file, 0o666)
  await expect(read({ kind: 'file', path: file })).rejects.toThrow()
  chmodSync(file, 0o600)
})
