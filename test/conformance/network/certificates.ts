/**
 * The test's own certificate authority, trusted on the test's machine beside the system's, and a certificate
 * from it.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AWS_HOSTS, SHIPPED_HOSTS } from './zones.ts'

const NAMES = [
  'example.com',
  '*.example.com',
  'allowed.test',
  '*.allowed.test',
  'evil.test',
  'six.test',
  'both.test',
  'registry.test',
]

export function makeCertificates(dir: string): void {
  const openssl = (...args: string[]): void => {
    const { status, stderr } = spawnSync('openssl', args, { cwd: dir, encoding: 'utf8' })
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/CN=test authority',
  )
  const alternatives = [...NAMES, ...SHIPPED_HOSTS, ...AWS_HOSTS].map(name => `DNS:${name}`).join(',')
  const leaf = ['-keyout', 'key.pem', '-out', 'cert.pem', '-days', '2', '-subj', '/CN=allowed.test']
  const names = ['-addext', `subjectAltName=${alternatives}`, '-addext', 'basicConstraints=critical,CA:FALSE']
  openssl('req', '-x509', ...key, ...leaf, ...names, '-CA', 'ca.pem', '-CAkey', 'ca.key')
  const system = readFileSync('/etc/ssl/certs/ca-certificates.crt', 'utf8')
  writeFileSync(join(dir, 'ca-certificates.crt'), `${system}\n${readFileSync(join(dir, 'ca.pem'), 'utf8')}`)
}
