import { afterEach, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import { skipUnless } from '../../../test/skip.ts'
import { storeOf, withCertificate } from './java-truststore.ts'

const STORE = '/etc/ssl/certs/java/cacerts'
const KEYTOOL = ['/usr/bin/keytool', '/usr/local/bin/keytool'].find(existsSync)
let directory = ''
afterEach(() => {
  if (directory !== '') rmSync(directory, { recursive: true })
  directory = ''
})

skipUnless(KEYTOOL !== undefined && existsSync(STORE), 'keytool and the system’s truststore of Java')(
  'keytool finds the added certificate, and those that were there',
  () => {
    directory = mkdtempSync(join(tmpdir(), 'pen-java-'))
    const store = readFileSync(STORE)
    const { certificate } = newAuthority('java')
    const file = join(directory, 'store')
    writeFileSync(file, withCertificate(store, 'pen', certificate) ?? '')
    const list = (...words: string[]) =>
      spawnSync(KEYTOOL ?? '', [
        '-list',
        '-keystore',
        file,
        '-storepass',
        'changeit',
        ...words,
      ]).stdout.toString()
    expect(list('-alias', 'pen', '-rfc').replaceAll('\r', '')).toContain(certificate.trim())
    expect(list()).toContain(`contains ${store.readUInt32BE(8) + 1} entries`)
    const other = newAuthority('other').certificate
    writeFileSync(file, storeOf(`# roots\n${other}\n${certificate}`))
    const shown = list('-rfc').replaceAll('\r', '')
    for (const each of [other, certificate]) expect(shown).toContain(each.trim())
  },
)

test('another format is left alone', () => {
  expect(withCertificate(Buffer.from('3082deadbeef'.repeat(20), 'hex'), 'pen', 'x')).toBeUndefined()
  expect(withCertificate(Buffer.alloc(0), 'pen', 'x')).toBeUndefined()
})
