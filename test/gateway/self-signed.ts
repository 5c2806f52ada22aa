/** A self-signed certificate. */
import { spawnSync } from 'node:child_process'

export function selfSigned(name = 'proxy.corp.test'): { key: string; cert: string } {
  const words = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -keyout - -out -'
  const { stdout } = spawnSync('openssl', [
    ...words.split(' '),
    '-subj',
    `/CN=${name}`,
    '-addext',
    `subjectAltName=DNS:${name}`,
  ])
  const text = stdout.toString()
  const at = text.indexOf('-----BEGIN CERTIFICATE')
  return { key: text.slice(0, at), cert: text.slice(at) }
}
