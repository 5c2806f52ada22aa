/**
 * HTTPS requests through proxies that open TLS: pen with a rule about requests, squid with ssl-bump, mitmproxy. Each
 * makes certificates by an authority of its own, verifies the server, and judges requests: pen and squid by method and
 * host, mitmproxy by nothing.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Absent, config, type Peer, start, which } from './peers.ts'
import { HOST, HTTPS, OUTSIDE } from './world.ts'

export interface Certificates {
  /** The authority of the outside, and the certificate of its server. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

/** Two authorities: one that signs the server's certificate, one for the peers that open TLS. */
export function makeCertificates(directory: string): Certificates {
  const at = (name: string): string => join(directory, name)
  const openssl = (...args: readonly string[]): void => {
    const made = Bun.spawnSync(['openssl', ...args], { cwd: directory })
    if (made.exitCode !== 0) throw new Error(`openssl failed: ${made.stderr}`)
  }
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  for (const name of ['outside', 'bump'])
    openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.crt`,
      '-subj',
      `/CN=${name}`,
    )
  openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', `/CN=${HOST}`)
  writeFileSync(at('names'), `subjectAltName=DNS:${HOST}\n`)
  openssl(
    ...[
      'x509',
      '-req',
      '-in',
      'server.csr',
      '-CA',
      'outside.crt',
      '-CAkey',
      'outside.key',
      '-CAcreateserial',
    ],
    ...['-extfile', 'names', '-out', 'server.crt'],
  )
  copyFileSync(at('bump.crt'), at('bump.pem'))
  writeFileSync(
    at('mitmproxy-ca.pem'),
    readFileSync(at('bump.key'), 'utf8') + readFileSync(at('bump.crt'), 'utf8'),
  )
  return { authority: at('outside.crt'), certificate: at('server.crt'), key: at('server.key') }
}

/** A request rule makes pen open TLS. The outside is an address of this machine here, so a rule names it too. */
export const ALLOW_OPENED = [
  ...['--allow', `GET,PUT ${HOST}:${HTTPS}/**`],
  ...['--allow', `${OUTSIDE}:${HTTPS}`],
]

export async function startOpeners(directory: string, authority: string): Promise<(Peer | Absent)[]> {
  const certgen = '/usr/lib/squid/security_file_certgen'
  const made = join(directory, 'made')
  if (which(certgen) !== undefined) {
    Bun.spawnSync([certgen, '-c', '-s', made, '-M', '4MB'])
    // squid drops root before it starts the program that makes certificates.
    Bun.spawnSync(['chown', '-R', 'proxy:proxy', made, join(directory, 'bump.key')])
  }
  const bump = config(directory, 'bump.conf', [
    `http_port 127.0.0.1:9107 ssl-bump cert=${directory}/bump.pem key=${directory}/bump.key generate-host-certificates=on`,
    `sslcrtd_program ${certgen} -s ${made} -M 4MB`,
    `tls_outgoing_options cafile=${authority}`,
    'acl hello at_step SslBump1',
    'ssl_bump peek hello',
    'ssl_bump bump all',
    `acl allowed dstdomain ${HOST}`,
    'acl methods method CONNECT GET PUT',
    'http_access allow allowed methods',
    'http_access deny all',
    `access_log stdio:${config(directory, 'bump.log', [], 0o666)}`,
    'cache_log /dev/null',
    'cache deny all',
    'pid_filename none',
    'max_filedescriptors 16384',
    'shutdown_lifetime 0 seconds',
    'pinger_enable off',
  ])
  return await Promise.all([
    start('squid, ssl-bump', 9107, 'apt-get install squid-openssl', which(certgen) && which('squid'), [
      ...['-N', '-f', bump],
    ]),
    start('mitmproxy, opened', 9108, 'apt-get install mitmproxy', which('mitmdump'), [
      ...['--quiet', '--listen-host', '127.0.0.1', '--listen-port', '9108', '--set', `confdir=${directory}`],
      ...['--set', `ssl_verify_upstream_trusted_ca=${authority}`, '--set', 'stream_large_bodies=1'],
    ]),
  ])
}
