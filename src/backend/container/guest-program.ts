/**
 * The host's loader and libraries for the exec daemon. With them it runs in every image, with any libc or none, and
 * nothing of the image is executed before the sandbox is complete.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { cachedFact } from '../../base/fact-cache.ts'
import { capture } from '../../base/spawn.ts'
import type { Bind } from './arguments.ts'

/**
 * Where the exec daemon and its libraries are in a container. The name is random, so no image can know it. It is in the
 * root directory, where an image cannot put a link. Any other path could lead to a program of the project.
 */
export const DAEMON_DIRECTORY = `/.pen-${crypto.getRandomValues(new Uint8Array(8)).toHex()}`
const PROGRAM = `${DAEMON_DIRECTORY}/pen`
const LOADER = `${DAEMON_DIRECTORY}/loader`
const LIBRARIES = `${DAEMON_DIRECTORY}/lib`

export interface GuestProgram {
  /** Files of the host and their paths inside. The program itself is the first. */
  readonly binds: readonly [Bind, ...Bind[]]
  /** The path of the loader as the program names it. */
  readonly loader: string | undefined
  /** The words that start it inside. */
  readonly words: readonly [string, ...string[]]
}

let asked: Promise<GuestProgram> | undefined

/** Cached. A caller that will need it soon calls it early. */
export function guestProgram(cacheDir: string): Promise<GuestProgram> {
  if (asked !== undefined) return asked
  asked = programOf(penBinary(), cacheDir)
  // The caller that awaits it handles the error. Until then it must not count as unhandled.
  asked.catch(() => undefined)
  return asked
}

/** The guest program is pen's own binary. A pen that runs from source has none. */
function penBinary(): string {
  if (import.meta.path.startsWith('/$bunfs/')) {
    if (existsSync(process.execPath)) return process.execPath
    throw new PenError('STATE', { what: 'pen was replaced while it ran', hint: 'run it again' })
  }
  throw new PenError('BACKEND', {
    what: 'containers need the compiled pen, whose binary runs inside',
    hint: 'build it: ./pen version',
  })
}

interface Needs {
  /** Null for a static program. */
  readonly loader: string | null
  readonly libraries: readonly Library[]
}

interface Library {
  readonly name: string
  readonly path: string
}

/** A program of the host with its loader and libraries, so that it can be started in any image. */
export async function programOf(binary: string, cacheDir?: string): Promise<GuestProgram> {
  const key = cacheDir === undefined ? undefined : keyOf(binary)
  const { loader, libraries } =
    key === undefined
      ? await needsOf(binary)
      : await cachedFact(`${cacheDir}/daemon-libraries.json`, key, () => needsOf(binary))
  const own: Bind = { from: binary, at: PROGRAM, mode: 'ro' }
  if (loader === null) return { binds: [own], loader: undefined, words: [PROGRAM] }
  return {
    binds: [
      own,
      { from: loader, at: LOADER, mode: 'ro' },
      ...libraries.map(({ name, path }): Bind => ({ from: path, at: `${LIBRARIES}/${name}`, mode: 'ro' })),
    ],
    loader,
    // The cache of libraries would be the image's.
    words: [LOADER, ...(isMusl(loader) ? [] : ['--inhibit-cache']), '--library-path', LIBRARIES, PROGRAM],
  }
}

/** The system's index of libraries. It is written whenever a library is installed. */
const INDEX = '/etc/ld.so.cache'

/** Undefined when no file shows that a library has changed. */
function keyOf(binary: string): string | undefined {
  if (!existsSync(INDEX)) return undefined
  return JSON.stringify(
    [binary, INDEX].map(path => {
      const { dev, ino, size, mtimeMs } = statSync(path)
      return [path, dev, ino, size, mtimeMs]
    }),
  )
}

async function needsOf(binary: string): Promise<Needs> {
  const loader = interpreterOf(binary)
  if (loader === undefined) return { loader: null, libraries: [] }
  const { stdout, code } = await capture([loader, '--list', binary], { env: {}, timeoutMs: 5000, cwd: '/' })
  if (code !== 0)
    throw new PenError('BACKEND', {
      what: `the libraries of ${binary} could not be listed by ${loader}`,
      hint: 'report this with `pen version --json`',
    })
  return { loader, libraries: parseList(stdout).filter(({ path }) => path !== loader) }
}

const isMusl = (loader: string): boolean => loader.includes('/ld-musl-')

/** `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`. A library without a file has no arrow. */
export function parseList(text: string): Library[] {
  return text.split('\n').flatMap(line => {
    const [, name, path] = /^\s*([A-Za-z0-9._+-]+) => (\/.+) \(0x[0-9a-f]+\)$/.exec(line) ?? []
    return name === undefined || path === undefined ? [] : [{ name, path }]
  })
}

const PT_INTERP = 3
const HEADER = 64
const ENTRY = 56

/** The loader that a 64-bit ELF program names. Undefined for a static program. */
export function interpreterOf(binary: string): string | undefined {
  const fd = openSync(binary, 'r')
  const bytes = (at: number, length: number): Buffer => {
    const buffer = Buffer.alloc(length)
    return buffer.subarray(0, readSync(fd, buffer, 0, length, at))
  }
  try {
    const head = bytes(0, HEADER)
    const table = Number(head.readBigUInt64LE(0x20))
    const count = head.readUInt16LE(0x38)
    for (let i = 0; i < count; i++) {
      const entry = bytes(table + i * ENTRY, ENTRY)
      if (entry.readUInt32LE(0) !== PT_INTERP) continue
      const text = bytes(Number(entry.readBigUInt64LE(8)), Number(entry.readBigUInt64LE(32)))
      return text.toString('utf8').replace(/\0.*$/s, '')
    }
    return undefined
  } finally {
    closeSync(fd)
  }
}
