import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from '../protocol/ssh-packets.ts'
import { isSignedBy } from './host-key.ts'
import { knownKeys } from './known-hosts.ts'

const KEY = 'AAAAC3NzaC1lZDI1NTE5AAAAIHZlcnkgbXVjaCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE='

test('a key is found by name, port and hash, as OpenSSH writes them, and not when it is revoked', () => {
  const dir = mkdtempSync(join(tmpdir(), 'pen-known-'))
  const file = join(dir, 'known_hosts')
  const lines = `# comment\na.example,b.example ssh-ed25519 ${KEY}\n[c.example]:2222 ssh-rsa AAAA\n*.d.example ssh-rsa AAAA\n`
  writeFileSync(file, lines)
  const keys = (hosts: string[], ...files: string[]) =>
    knownKeys(hosts, files).map(({ host, key }) => [host, key])
  const plain = keys(['b.example:22', 'c.example:2222', 'c.example:22', 'x.d.example:22'], lines)
  expect(plain).toEqual([
    ['b.example:22', KEY],
    ['c.example:2222', 'AAAA'],
  ])
  expect(spawnSync('ssh-keygen', ['-H', '-f', file]).status).toBe(0)
  const hashed = readFileSync(file, 'utf8')
  expect(hashed).not.toContain('a.example')
  expect(keys(['a.example:22', 'c.example:2222'], hashed)).toEqual([
    ['a.example:22', KEY],
    ['c.example:2222', 'AAAA'],
  ])
  expect(keys(['a.example:22'], lines, `@revoked * ssh-ed25519 ${KEY}\n`)).toEqual([])
  expect(keys(['github.com:22', 'gitlab.com:22'])).toHaveLength(2)
  expect(keys(['github.com:443'])).toEqual([])
  rmSync(dir, { recursive: true })
})

const ssh = (number: Buffer): Buffer =>
  text((number[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.of(0), number]) : number)
const field = (value: string | undefined): Buffer => Buffer.from(value ?? '', 'base64url')

test.each(['P-256', 'P-384', 'P-521'])('a signature of a server with an ECDSA key on %s is verified', crv => {
  const name = `ecdsa-sha2-nistp${crv.slice(2)}`
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: crv })
  const { x, y } = publicKey.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.of(4), field(x), field(y)])
  const blob = Buffer.concat([text(name), text(name.slice(11)), text(point)])
  const bytes = Buffer.from('the session')
  const hash = { 'P-256': 'sha256', 'P-384': 'sha384', 'P-521': 'sha512' }[crv]
  const raw = sign(hash, bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  const half = raw.length / 2
  const trimmed = (part: Buffer): Buffer => part.subarray(part.findIndex(one => one !== 0))
  const value = Buffer.concat([ssh(trimmed(raw.subarray(0, half))), ssh(trimmed(raw.subarray(half)))])
  const signature = Buffer.concat([text(name), text(value)])
  expect(isSignedBy(blob, signature, bytes)).toBe(true)
  expect(isSignedBy(blob, signature, Buffer.from('another'))).toBe(false)
})

test('a signature of a server with an RSA key is verified, without SHA-1', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const { n, e } = publicKey.export({ format: 'jwk' })
  const blob = Buffer.concat([text('ssh-rsa'), ssh(field(e)), ssh(field(n))])
  const bytes = Buffer.from('the session')
  const by = (algorithm: string, hash: string): Buffer =>
    Buffer.concat([text(algorithm), text(sign(hash, bytes, privateKey))])
  expect(isSignedBy(blob, by('rsa-sha2-256', 'sha256'), bytes)).toBe(true)
  expect(isSignedBy(blob, by('rsa-sha2-512', 'sha512'), bytes)).toBe(true)
  expect(isSignedBy(blob, by('rsa-sha2-512', 'sha256'), bytes)).toBe(false)
  expect(isSignedBy(blob, by('ssh-rsa', 'sha1'), bytes)).toBe(false)
})
