/**
 * The root file system of the tests' containers. It needs no registry: it is built once from this machine's
 * distribution packages, and stored outside of the clone for the next run.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The packages of image/Dockerfile: its build then finds nothing missing, and needs no network. */
const DEFAULT_PACKAGES = packagesOf(readFileSync(join(import.meta.dir, '../../image/Dockerfile'), 'utf8'))

function packagesOf(dockerfile: string): string[] {
  const list = /^ARG PACKAGES="([a-z0-9+. -]+)"$/m.exec(dockerfile)?.[1]
  if (list === undefined) throw new Error('image/Dockerfile names no packages')
  return list.split(' ')
}

/** What tests run inside containers, besides the default image. */
const TEST_PACKAGES = [
  'bind9-dnsutils',
  'iproute2',
  'iputils-ping',
  'nodejs',
  'openssl',
  'postgresql-client',
  'procps',
  'python3',
  'strace',
  'wget',
]

const SUITE = 'bookworm'
/** Files that the slim images of the distribution leave out. */
const LEFT_OUT = ['doc', 'man', 'locale', 'info']

export interface Base {
  /** Everything that tests run inside. */
  readonly full: string
  /** Only what the default image is made of, to measure it. */
  readonly slim: string
  /** Changes with the contents. */
  readonly key: string
}

export const isRoot = process.getuid?.() === 0

/** Readable by every user of the tests, and still there at the next run. */
export const CACHE = isRoot
  ? '/var/cache/pen-test'
  : join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'pen-test')

const RECIPE = JSON.stringify([SUITE, DEFAULT_PACKAGES, TEST_PACKAGES, LEFT_OUT, 1])

function baseHere(): Base {
  const key = createHash('sha256').update(RECIPE).digest('hex').slice(0, 12)
  return { key, full: join(CACHE, `base-${key}.tar`), slim: join(CACHE, `slim-${key}.tar`) }
}

/** The first process builds it and the others wait. It takes half a minute on a fast mirror. */
export function makeBase(): Base {
  mkdirSync(CACHE, { recursive: true, mode: 0o755 })
  const base = baseHere()
  if (existsSync(base.full)) return base
  locked('base', [
    'sh',
    '-c',
    '[ -e "$1" ] || exec "$2" run "$3"',
    'sh',
    base.full,
    process.execPath,
    import.meta.path,
  ])
  if (!existsSync(base.full)) throw new Error(`${base.full} was not made`)
  return base
}

/**
 * A Debian as its slim images are, without certificates and without curl, whose packages come from `source`, one line of a sources.list.
 * Made once for each source.
 */
export function makeBareBase(source: string): string {
  mkdirSync(CACHE, { recursive: true, mode: 0o755 })
  const key = createHash('sha256')
    .update(JSON.stringify([SUITE, source, LEFT_OUT]))
    .digest('hex')
    .slice(0, 12)
  const file = join(CACHE, `bare-${key}.tar`)
  if (existsSync(file)) return file
  const words = [
    'mmdebstrap',
    ...['--variant=minbase', '--quiet', '--format=tar'],
    ...LEFT_OUT.map(name => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    `--customize-hook=rm -rf "$1"/etc/apt/sources.list.d/*; echo '${source}' >"$1/etc/apt/sources.list"`,
    ...[SUITE, `${file}.tmp`],
  ]
  locked('bare', [
    'sh',
    '-c',
    '[ -e "$0" ] || { "$@" && chmod 644 "$0.tmp" && mv "$0.tmp" "$0"; }',
    file,
    ...words,
  ])
  return file
}

/** Runs a command under a lock among all test processes. */
export function locked(name: string, argv: readonly string[], env?: Readonly<Record<string, string>>): void {
  const words = ['--timeout', '300', join(CACHE, `${name}.lock`), ...argv]
  const ran = spawnSync('flock', words, {
    encoding: 'utf8',
    timeout: 600_000,
    ...(env !== undefined && { env: { ...env } }),
  })
  if (ran.status !== 0) throw new Error(`${argv.join(' ')}: ${ran.status} ${ran.stdout}${ran.stderr}`)
}

/** One run for both: the slim one is copied while the full one is being made. */
function bootstrap({ full, slim }: Base): void {
  const temporary = { full: `${full}.${process.pid}.tmp`, slim: `${slim}.${process.pid}.tmp` }
  const without = ['./var/lib/apt/lists/*', './var/cache/apt/*', './dev/*', './proc/*', './sys/*']
  const pack = `tar --create --file='${temporary.slim}' --directory="$1" --one-file-system ${without
    .map(path => `--exclude='${path}'`)
    .join(' ')} .`
  const words = [
    '--variant=minbase',
    '--quiet',
    '--format=tar',
    `--include=${DEFAULT_PACKAGES.join(',')}`,
    ...LEFT_OUT.map(name => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    `--customize-hook=${pack}`,
    `--customize-hook=chroot "$1" apt-get install -y --no-install-recommends ${TEST_PACKAGES.join(' ')}`,
    SUITE,
    temporary.full,
  ]
  try {
    const ran = spawnSync('mmdebstrap', words, { encoding: 'utf8', timeout: 280_000 })
    if (ran.status !== 0) throw new Error(`mmdebstrap: ${ran.status} ${ran.stderr.slice(-4000)}`)
    for (const file of [temporary.slim, temporary.full]) chmodSync(file, 0o644)
    renameSync(temporary.slim, slim)
    renameSync(temporary.full, full)
  } finally {
    for (const file of Object.values(temporary)) rmSync(file, { force: true })
  }
}

if (import.meta.main) bootstrap(baseHere())
