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
  /** A Debian as its slim images are: without certificates, curl, and sources of packages. */
  readonly bare: string
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
  const tar = (name: string): string => join(CACHE, `${name}-${key}.tar`)
  return { key, full: tar('base'), slim: tar('slim'), bare: tar('bare') }
}

/** The first process builds it and the others wait. It takes half a minute on a fast mirror. */
export function makeBase(): Base {
  mkdirSync(CACHE, { recursive: true, mode: 0o755 })
  const base = baseHere()
  if (existsSync(base.bare)) return base
  locked('base', [
    'sh',
    '-c',
    '[ -e "$1" ] || exec "$2" run "$3"',
    'sh',
    base.bare,
    process.execPath,
    import.meta.path,
  ])
  if (!existsSync(base.bare)) throw new Error(`${base.bare} was not made`)
  return base
}

/** The bare Debian with packages from `source`, one line of a sources.list. Made once for each source. */
export function makeBareBase(source: string): string {
  const { bare } = makeBase()
  const key = createHash('sha256').update(`${bare} ${source}`).digest('hex').slice(0, 12)
  const file = join(CACHE, `bare-with-${key}.tar`)
  locked('bare', ['sh', '-ec', ADD_SOURCE, 'sh', file, bare, source])
  return file
}

const ADD_SOURCE = `[ ! -e "$1" ] || exit 0
rm -rf "$1.d" && mkdir -p "$1.d/etc/apt" && echo "$3" >"$1.d/etc/apt/sources.list"
cp "$2" "$1.tmp"
tar --append --file="$1.tmp" --owner=0 --group=0 --directory="$1.d" ./etc/apt/sources.list
rm -r "$1.d"
mv "$1.tmp" "$1"`

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

/** One run for all: the smaller ones are copied while the full one is being made. */
function bootstrap({ full, slim, bare }: Base): void {
  const temporary = (file: string): string => `${file}.${process.pid}.tmp`
  const without = ['./var/lib/apt/lists/*', './var/cache/apt/*', './dev/*', './proc/*', './sys/*']
  const pack = (file: string, ...more: readonly string[]) =>
    `tar --create --file='${temporary(file)}' --directory="$1" --one-file-system ${[...without, ...more]
      .map(path => `--exclude='${path}'`)
      .join(' ')} .`
  const install = (packages: readonly string[]) =>
    `chroot "$1" apt-get install -y --no-install-recommends ${packages.join(' ')}`
  const words = [
    '--variant=minbase',
    '--quiet',
    '--format=tar',
    ...LEFT_OUT.map(name => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    `--customize-hook=${pack(bare, './etc/apt/sources.list', './etc/apt/sources.list.d/*')}`,
    `--customize-hook=${install(DEFAULT_PACKAGES)}`,
    `--customize-hook=${pack(slim)}`,
    `--customize-hook=${install(TEST_PACKAGES)}`,
    SUITE,
    temporary(full),
  ]
  // The bare one is the last: when it exists, all of them do.
  const files = [slim, full, bare]
  try {
    const ran = spawnSync('mmdebstrap', words, { encoding: 'utf8', timeout: 280_000 })
    if (ran.status !== 0) throw new Error(`mmdebstrap: ${ran.status} ${ran.stderr.slice(-4000)}`)
    for (const file of files) chmodSync(temporary(file), 0o644)
    for (const file of files) renameSync(temporary(file), file)
  } finally {
    for (const file of files) rmSync(temporary(file), { force: true })
  }
}

if (import.meta.main) bootstrap(baseHere())
