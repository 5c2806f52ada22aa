/**
 * Other proxies, each configured in its own favour: no cache, tunnels passed through unread. Those that can do
 * pen's job do it: they allow one host and log every connection.
 *
 * tinyproxy also runs as the package installs it, which logs and allows everything, and with neither (`bare`),
 * to show what that costs. mitmproxy and sandbox-runtime's proxy allow everything here and write nothing. A
 * peer that is not available is listed with the reason.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOST } from './world.ts'

export interface Peer {
  readonly name: string
  readonly port: number
  readonly pid: number
  stop(): void
}

export interface Absent {
  readonly name: string
  readonly why: string
}

const SANDBOX_RUNTIME = '@anthropic-ai/sandbox-runtime'
const READY_MS = 15_000

/** Runs before the namespace is entered: packages come from outside. */
export function installPeers(directory: string): void {
  if (process.env['PEN_NO_INSTALL'] === '1') return
  const missing = Object.entries({
    '/usr/lib/squid/security_file_certgen': 'squid-openssl',
    tinyproxy: 'tinyproxy',
    mitmdump: 'mitmproxy',
    socat: 'socat',
    rg: 'ripgrep',
  })
    .filter(([command]) => which(command) === undefined)
    .map(([, name]) => name)
  if (missing.length > 0 && process.getuid?.() === 0 && which('apt-get') !== undefined)
    Bun.spawnSync(['apt-get', 'install', '-y', '--no-install-recommends', ...missing], {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
  mkdirSync(join(directory, 'npm'), { recursive: true })
  Bun.spawnSync(
    [
      'npm',
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--prefix',
      join(directory, 'npm'),
      SANDBOX_RUNTIME,
    ],
    { stdio: ['ignore', 'ignore', 'ignore'], cwd: directory },
  )
}

export interface SandboxRuntime {
  readonly version: string
  readonly cli: string
  readonly proxy: string
}

export function findSandboxRuntime(directory: string): SandboxRuntime | undefined {
  const root = join(directory, 'npm/node_modules', SANDBOX_RUNTIME)
  const proxy = join(root, 'dist/sandbox/http-proxy.js')
  if (!existsSync(proxy)) return undefined
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  return { version, cli: join(root, 'dist/cli.js'), proxy }
}

export const which = (command: string): string | undefined =>
  Bun.which(command, { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` }) ?? undefined

export async function startPeers(directory: string): Promise<(Peer | Absent)[]> {
  const runtime = findSandboxRuntime(directory)
  const proxy = join(directory, 'proxy.mjs')
  if (runtime !== undefined)
    writeFileSync(
      proxy,
      `import { createHttpProxyServer } from ${JSON.stringify(runtime.proxy)}
       createHttpProxyServer({ filter: () => true }).listen(9104, '127.0.0.1')`,
    )
  return await Promise.all([
    start('squid', 9101, 'apt-get install squid', which('squid'), ['-N', '-f', squidConfig(directory, 9101)]),
    start('tinyproxy', 9102, 'apt-get install tinyproxy', which('tinyproxy'), [
      '-d',
      '-c',
      tinyproxyConfig(directory, 9102, [
        'LogLevel Connect',
        `LogFile "${join(directory, 'tinyproxy.log')}"`,
        `Filter "${config(directory, 'allowed-hosts', [`^${HOST.replaceAll('.', '[.]')}$`])}"`,
        'FilterExtended On',
        'FilterDefaultDeny Yes',
      ]),
    ]),
    start('tinyproxy, as installed', 9106, 'apt-get install tinyproxy', which('tinyproxy'), [
      '-d',
      '-c',
      // The package's default configuration.
      tinyproxyConfig(directory, 9106, [
        'LogLevel Info',
        `LogFile "${join(directory, 'tinyproxy-installed.log')}"`,
        'ViaProxyName "tinyproxy"',
      ]),
    ]),
    start('tinyproxy (bare)', 9105, 'apt-get install tinyproxy', which('tinyproxy'), [
      '-d',
      '-c',
      tinyproxyConfig(directory, 9105, ['LogLevel Critical']),
    ]),
    start('mitmproxy', 9103, 'apt-get install mitmproxy', which('mitmdump'), [
      ...['--quiet', '--listen-host', '127.0.0.1', '--listen-port', '9103'],
      ...['--ignore-hosts', '.*', '--set', `confdir=${directory}`],
    ]),
    start(
      `sandbox-runtime ${runtime?.version ?? ''}`.trim(),
      9104,
      `npm install ${SANDBOX_RUNTIME}`,
      runtime === undefined ? undefined : which('node'),
      [proxy],
    ),
  ])
}

export async function start(
  name: string,
  port: number,
  fix: string,
  program: string | undefined,
  args: readonly string[],
): Promise<Peer | Absent> {
  if (program === undefined) return { name, why: `it is not here (${fix})` }
  const child = Bun.spawn([program, ...args], { stdio: ['ignore', 'ignore', 'ignore'] })
  const stop = (): void => child.kill('SIGKILL')
  for (const end = performance.now() + READY_MS; performance.now() < end; await Bun.sleep(50)) {
    if (child.exitCode !== null) return { name, why: `it ended with code ${child.exitCode}` }
    if (await isListening(port)) return { name, port, pid: child.pid, stop }
  }
  stop()
  return { name, why: `it did not listen within ${READY_MS / 1000} s` }
}

function isListening(port: number): Promise<boolean> {
  return Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
    socket => {
      socket.end()
      return true
    },
    () => false,
  )
}

function squidConfig(directory: string, port: number): string {
  return config(directory, 'squid.conf', [
    `http_port 127.0.0.1:${port}`,
    `acl allowed dstdomain ${HOST}`,
    'http_access allow allowed',
    'http_access deny all',
    // It drops root before it opens this.
    `access_log stdio:${config(directory, 'squid.log', [], 0o666)}`,
    'cache_log /dev/null',
    'cache deny all',
    'pid_filename none',
    'max_filedescriptors 16384',
    'shutdown_lifetime 0 seconds',
    'pinger_enable off',
  ])
}

function tinyproxyConfig(directory: string, port: number, more: readonly string[]): string {
  return config(directory, `tinyproxy-${port}.conf`, [
    `Port ${port}`,
    'Listen 127.0.0.1',
    'MaxClients 6000',
    'Timeout 600',
    'Allow 127.0.0.1',
    ...more,
  ])
}

export function config(directory: string, name: string, lines: readonly string[], mode = 0o644): string {
  const path = join(directory, name)
  writeFileSync(path, lines.map(line => `${line}\n`).join(''))
  chmodSync(path, mode)
  return path
}
