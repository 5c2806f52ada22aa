/**
 * The benchmark's own network: a namespace with only loopback, where a TEST-NET address is the outside. No
 * packet can leave it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const HOST = 'bench.test'
export const OUTSIDE = '192.0.2.1'
export const PORTS = { source: 9001, sink: 9002, echo: 9003 } as const
export const HTTPS = 9004

/** The outside is an address of this machine here. pen refuses those unless a rule names them. */
export const ALLOW = [HOST, OUTSIDE].flatMap(host =>
  Object.values(PORTS).flatMap(port => ['--allow', `${host}:${port}`]),
)

/** Runs the same command again, inside the namespace. There the machine trusts `authority` alone. */
export function enterNamespace(argv: readonly string[], directory: string, authority: string): number {
  const hosts = join(directory, 'hosts')
  writeFileSync(hosts, `127.0.0.1 localhost\n${OUTSIDE} ${HOST}\n`)
  const furnish = [
    'ip link set lo up',
    `ip address add ${OUTSIDE}/32 dev lo`,
    'echo 1 >/proc/sys/net/ipv4/tcp_tw_reuse',
    'mount --bind "$0" /etc/hosts',
    `mount --bind '${authority}' /etc/ssl/certs/ca-certificates.crt`,
    'exec "$@"',
  ].join(' && ')
  const root = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  return Bun.spawnSync(['unshare', ...root, '--net', '--mount', 'sh', '-c', furnish, hosts, ...argv], {
    stdio: ['ignore', 'inherit', 'inherit'],
  }).exitCode
}

export function compileLoad(directory: string): string {
  const out = join(directory, 'load')
  const made = Bun.spawnSync([
    'gcc',
    '-O2',
    '-pthread',
    join(import.meta.dir, 'load.c'),
    '-o',
    out,
    '-lssl',
    '-lcrypto',
  ])
  if (made.exitCode !== 0) throw new Error(`gcc failed: ${made.stderr}`)
  return out
}

export async function startServer(load: string, certificate: string, key: string): Promise<{ stop(): void }> {
  const server = Bun.spawn([load, 'serve', OUTSIDE, certificate, key], { stdout: 'pipe', stderr: 'inherit' })
  await server.stdout.getReader().read()
  return { stop: () => server.kill('SIGKILL') }
}

/** CPU time of a process in seconds, its memory in MB, and its open descriptors. */
export function used(pid: number): { readonly cpu: number; readonly memory: number; readonly files: number } {
  const at = `/proc/${pid}`
  if (!existsSync(at)) return { cpu: 0, memory: 0, files: 0 }
  const fields = readFileSync(`${at}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const resident = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`${at}/status`, 'utf8'))?.[1]
  return {
    cpu: (Number(fields[11]) + Number(fields[12])) / 100,
    memory: Number(resident ?? 0) / 1024,
    files: readdirSync(`${at}/fd`).length,
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}
