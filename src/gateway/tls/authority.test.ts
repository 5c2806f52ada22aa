import { afterEach, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { host } from '../../../test/gateway/world.ts'
import { openAuthority } from './authority.ts'

const DAY = 86_400_000
let directory = ''
const fresh = (): string => {
  directory = mkdtempSync(join(tmpdir(), 'pen-authority-'))
  return directory
}
afterEach(() => rmSync(directory, { recursive: true }))

test('OpenSSL accepts its certificates in strict mode, for their name only', () => {
  const authority = openAuthority(fresh(), 'project-1234')
  const leaf = authority.leafFor(host('api.example.com'))
  writeFileSync(join(directory, 'ca.pem'), authority.certificate)
  writeFileSync(join(directory, 'leaf.pem'), leaf.cert)
  const verify = (name: string) =>
    spawnSync('openssl', [
      'verify',
      '-x509_strict',
      '-purpose',
      'sslserver',
      '-verify_hostname',
      name,
      '-CAfile',
      join(directory, 'ca.pem'),
      join(directory, 'leaf.pem'),
    ]).status
  expect(verify('api.example.com')).toBe(0)
  expect(verify('other.example.com')).not.toBe(0)
})

test('its file is for its owner alone, and the next start reads the same authority', () => {
  const first = openAuthority(fresh(), 'p')
  const file = join(directory, 'authority.pem')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(openAuthority(directory, 'p').certificate).toBe(first.certificate)
  expect(readFileSync(file, 'utf8')).toContain('PRIVATE KEY')
})

test('it is renewed 90 days before its end', () => {
  const first = openAuthority(fresh(), 'p')
  const validTo = new Date(new X509Certificate(first.certificate).validTo).getTime()
  expect(openAuthority(directory, 'p', validTo - 91 * DAY).certificate).toBe(first.certificate)
  expect(openAuthority(directory, 'p', validTo - 89 * DAY).certificate).not.toBe(first.certificate)
})

test('a long host name is in the certificate', () => {
  const name = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`
  const leaf = new X509Certificate(openAuthority(fresh(), 'p').leafFor(host(name)).cert)
  expect(leaf.checkHost(name)).toBe(name)
})

test('its random bytes are the same for one text, and others for another text or authority', () => {
  const take = (random: () => number): string => Array.from({ length: 70 }, random).join(' ')
  const first = openAuthority(fresh(), 'p')
  const again = openAuthority(directory, 'p')
  expect(take(again.randomFor('a'))).toBe(take(first.randomFor('a')))
  expect(take(first.randomFor('b'))).not.toBe(take(first.randomFor('a')))
  rmSync(directory, { recursive: true })
  expect(take(openAuthority(fresh(), 'p').randomFor('a'))).not.toBe(take(first.randomFor('a')))
})
