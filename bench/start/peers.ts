/**
 * Other sandboxes to compare with, the newest of each, installed from npm into the benchmark's own cache. One
 * that cannot be installed or does not run here is listed with the reason: a gap in a table must not look like
 * a result.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Contestant {
  readonly name: string
  readonly argv: readonly string[]
}

export interface Missing {
  readonly name: string
  readonly reason: string
}

const PLAIN_BWRAP = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-all', 'true']

/** Every ratio is relative to this. */
export const RAW = 'bwrap'
export const SANDBOX_RUNTIME = 'sandbox-runtime'

/** `node` is installed too because sandbox-runtime needs a newer one than many systems have. */
const PACKAGES = [
  '@anthropic-ai/sandbox-runtime@latest',
  '@openai/codex@latest',
  '@microsoft/mxc-sdk@latest',
  'node@22',
]

export function rawBubblewrap(): Contestant {
  return { name: RAW, argv: [Bun.which('bwrap') ?? 'bwrap', ...PLAIN_BWRAP] }
}

export function installPeers(dir: string): (Contestant | Missing)[] {
  mkdirSync(dir, { recursive: true })
  const problem = install(dir)
  const modules = join(dir, 'node_modules')
  const peer = (name: string, needs: readonly string[], argv: readonly string[]): Contestant | Missing => {
    const tool = needs.find(need => Bun.which(need) === null)
    if (tool !== undefined) return { name, reason: `${tool} is not installed` }
    const file = argv.find(word => word.startsWith(modules) && !existsSync(word))
    if (file !== undefined)
      return { name, reason: problem ?? `npm brought no ${file.slice(modules.length + 1)}` }
    return { name, argv }
  }
  const node = join(modules, '.bin/node')
  const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const vendor = join(
    modules,
    `@openai/codex-linux-${process.arch}/vendor/${arch}-unknown-linux-musl/bin/codex`,
  )
  const mxc = join(modules, `@microsoft/mxc-sdk/bin/${process.arch}/lxc-exec`)
  const mxcConfig = join(dir, 'mxc.json')
  writeFileSync(
    mxcConfig,
    JSON.stringify({ version: '1.0.0', containment: 'bubblewrap', process: { commandLine: 'true' } }),
  )
  if (existsSync(mxc)) chmodSync(mxc, 0o755)
  return [
    peer('mxc', ['bwrap'], [mxc, mxcConfig]),
    peer('codex (binary)', [], [vendor, 'sandbox', '--', 'true']),
    peer('codex (npm)', [], [node, join(modules, '@openai/codex/bin/codex.js'), 'sandbox', '--', 'true']),
    peer(
      SANDBOX_RUNTIME,
      ['bwrap', 'socat', 'rg'],
      [node, join(modules, '@anthropic-ai/sandbox-runtime/dist/cli.js'), '--', 'true'],
    ),
  ]
}

/** The measured versions. */
export function versions(dir: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const name of PACKAGES.map(text => text.replace(/(.)@.*/, '$1')))
    try {
      const text = readFileSync(join(dir, 'node_modules', name, 'package.json'), 'utf8')
      out[name] = (JSON.parse(text) as { version: string }).version
    } catch {
      // Not installed. The table says why.
    }
  return out
}

function install(dir: string): string | undefined {
  const npm = Bun.which('npm')
  if (npm === null) return 'npm is not installed'
  writeFileSync(join(dir, 'package.json'), '{"private":true}\n')
  const flags = ['--no-audit', '--no-fund', '--force', '--loglevel=error']
  const made = Bun.spawnSync([npm, 'install', ...flags, ...PACKAGES], {
    cwd: dir,
    stdout: 'ignore',
    stderr: 'pipe',
    timeout: 300_000,
  })
  if (made.exitCode === 0) return undefined
  const [first = 'no reason given'] = made.stderr.toString().split('\n').filter(Boolean)
  return `npm install failed: ${first.slice(0, 120)}`
}
