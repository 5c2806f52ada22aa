/**
 * Builds dist/pen, and dist/index.js beside it: one binary that ignores files of the current directory and
 * Bun's environment variables (docs/decisions/0001 and 0004). Everything is written under a temporary name and
 * renamed when complete, so a pen that runs meanwhile sees the old binary or the new one.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildLibrary } from './build-library.ts'
import { closeDoors } from './close-doors.ts'
import { sign } from './release/sign-mach-o.ts'

const root = join(import.meta.dir, '..')

/**
 * Bytecode halves the start of the binary (19 ms to 10 ms), and so does delaying the JIT compiler. Code that runs
 * once is interpreted, and on two cores the compiler's threads would compete with it. A supervisor and every verb
 * but `run` reset this. The other options close doors.
 */
export const BUILD_FLAGS = [
  '--compile',
  '--minify',
  '--bytecode',
  '--format=esm',
  '--splitting',
  '--compile-jit-policy=100',
  '--no-compile-autoload-bunfig',
  '--no-compile-autoload-dotenv',
  '--no-compile-autoload-tsconfig',
  '--no-compile-autoload-package-json',
] as const

/** Bun for another platform. */
export interface Runtime {
  readonly platform: string
  readonly arch: string
  readonly program: string
}

export interface Build {
  readonly entry: string
  readonly out: string
  readonly flags?: readonly string[]
  readonly define?: Readonly<Record<string, string>>
  /** The default is this machine's. */
  readonly runtime?: Runtime
  /** Only tests leave the doors open, to show that their attacks work on an ordinary build. */
  readonly leaveDoorsOpen?: boolean
}

/** Compiles `entry`, closes the doors, and only then makes the file executable and moves it into place. */
export function build(options: Build): void {
  // The name of the file is in the binary, and two builds have the same bytes.
  const folder = `${options.out}.${process.pid}.tmp`
  const temporary = join(folder, 'pen')
  const { runtime } = options
  const define = Object.entries(options.define ?? {}).flatMap(([name, value]) => [
    '--define',
    `${name}=${JSON.stringify(value)}`,
  ])
  const flags = [
    ...(options.flags ?? BUILD_FLAGS),
    ...define,
    ...(runtime === undefined ? [] : crossFlags(runtime)),
  ]
  try {
    mkdirSync(folder)
    const made = Bun.spawnSync(
      [process.execPath, 'build', ...flags, options.entry, `--outfile=${temporary}`],
      { cwd: root, stdout: 'pipe', stderr: 'pipe' },
    )
    if (made.exitCode !== 0) throw new Error(`bun build failed:\n${made.stdout}${made.stderr}`)
    chmodSync(temporary, 0o600)
    const binary = readFileSync(temporary)
    if (options.leaveDoorsOpen !== true) closeDoors(binary)
    const isForMac = (runtime?.platform ?? process.platform) === 'darwin'
    writeFileSync(temporary, isForMac ? sign(binary) : binary)
    chmodSync(temporary, 0o755)
    renameSync(temporary, options.out)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const crossFlags = ({ platform, arch, program }: Runtime): readonly string[] => [
  `--target=bun-${platform}-${arch}`,
  `--compile-executable-path=${program}`,
]

export function revision(): string {
  try {
    const git = Bun.spawnSync(['git', 'rev-parse', '--short=12', 'HEAD'], { cwd: root, stderr: 'ignore' })
    return git.exitCode === 0 ? git.stdout.toString().trim() : 'unknown'
  } catch {
    return 'unknown' // a tarball, or no git on this machine
  }
}

if (import.meta.main) {
  const dist = join(root, 'dist')
  mkdirSync(dist, { recursive: true })
  // The stamp is older than every source that this build reads, so an edit during the build counts as newer.
  const stamp = join(dist, `.built.${process.pid}.tmp`)
  writeFileSync(stamp, '')
  try {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    build({
      entry: join(root, 'src/main.ts'),
      out: join(dist, 'pen'),
      define: { PEN_VERSION: version, PEN_REVISION: revision() },
    })
    buildLibrary(dist)
    renameSync(stamp, join(dist, '.built'))
  } catch (error) {
    rmSync(stamp, { force: true })
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
