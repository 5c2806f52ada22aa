/**
 * The files of an image, seen from outside, in a container in which nothing has run yet. They are hostile. Every
 * component is opened by descriptor without following links, and links are resolved within the container's root. Only
 * regular files are opened. A directory that is larger than any real one is refused.
 */
import { closeSync, constants, lstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { tryOpenBeneath } from '../../base/beneath/open-beneath.ts'
import { errnoOf } from '../../base/error.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { PROGRAM_HEAD_BYTES, type ProgramHead, parseProgramHead } from '../../base/program-head.ts'
import { isWithin } from '../../policy/files/path.ts'
import { kindOf, type ProgramFiles, type Status } from './files.ts'
import { inDirectory } from './follow.ts'

/** An image that cannot be surveyed. */
export class UnsupportedImage extends Error {}

const MAX_NAMES = 20_000
const MAX_LINKS = 40
const MAX_COMPARED = 64 * 1024 ** 2
const PIECE = 65_536
/** Replaces non-UTF-8 bytes. Such a name could not be looked up again. */
const REPLACEMENT_CHARACTER = '\ufffd'

export class ImageFiles implements ProgramFiles {
  readonly #root: number
  readonly #foreign: readonly string[]
  readonly #known = new Map<string, Status | undefined>()
  #open: { readonly directory: string; readonly fd: number | undefined } | undefined
  #compared = 0

  /** `foreign` are mounts over the image. Everything below them is not the image's. */
  constructor(root: number, foreign: readonly string[]) {
    this.#root = root
    this.#foreign = foreign
  }

  look(path: string): Status | undefined {
    if (!this.#known.has(path)) this.#known.set(path, this.#look(path))
    return this.#known.get(path)
  }

  readLink(path: string): string | undefined {
    const to = this.#ask(path, at => readlinkSync(at))
    // The kernel would find the target, but this code could not.
    if (to?.includes(REPLACEMENT_CHARACTER) === true)
      throw new UnsupportedImage(`${path} is a link to a non-UTF-8 name`)
    return to
  }

  list(directory: string): ReturnType<ProgramFiles['list']> {
    if (this.look(directory)?.kind !== 'directory') return []
    const entries = this.#ask(`${directory}/.`, at => readdirSync(at, { withFileTypes: true })) ?? []
    if (entries.length > MAX_NAMES)
      throw new UnsupportedImage(`${directory} has more than ${MAX_NAMES} names`)
    const own = entries.filter(({ name }) => !this.#isForeign(inDirectory(directory, name)))
    return own.map(entry => {
      if (entry.name.includes(REPLACEMENT_CHARACTER))
        throw new UnsupportedImage(`${directory} has a non-UTF-8 name`)
      const kind = kindOf(entry)
      // Some file systems do not report the kind in listings.
      const known = kind === 'other' ? this.look(inDirectory(directory, entry.name))?.kind : kind
      return { name: entry.name, kind: known ?? 'other' }
    })
  }

  real(path: string): string | undefined {
    const names = path.split('/')
    let at = ''
    for (let links = 0; names.length > 0; ) {
      const name = names.shift() ?? ''
      if (name === '' || name === '.') continue
      if (name === '..') {
        at = at.slice(0, Math.max(0, at.lastIndexOf('/')))
        continue
      }
      const next = `${at}/${name}`
      // The target depends on the reader.
      if (next === '/proc') throw new UnsupportedImage(`${path} leads into /proc`)
      const status = this.look(next)
      if (status === undefined) return undefined
      if (status.kind !== 'link') {
        at = next
        continue
      }
      const to = this.readLink(next)
      links += 1
      if (to === undefined || links > MAX_LINKS) return undefined
      names.unshift(...to.split('/'))
      if (to.startsWith('/')) at = ''
    }
    return at === '' ? '/' : at
  }

  head(file: string): ProgramHead {
    const bytes = Buffer.alloc(PROGRAM_HEAD_BYTES)
    const length = this.#read(file, fd => readSync(fd, bytes, 0, bytes.length, 0))
    return length === undefined ? { kind: 'unreadable' } : parseProgramHead(bytes.subarray(0, length))
  }

  /**
   * Hard links become copies when an engine maps the owners of an image's files one by one. When the comparison takes
   * too long, they count as the same.
   */
  same(one: string, other: string): boolean {
    const size = this.look(one)?.size
    const both = this.#read(one, first =>
      this.#read(other, second => this.#compare(first, second, size ?? 0)),
    )
    return both ?? false
  }

  close(): void {
    if (this.#open?.fd !== undefined) closeSync(this.#open.fd)
    this.#open = undefined
  }

  #look(path: string): Status | undefined {
    const stats = this.#ask(path, at => lstatSync(at, { bigint: true }))
    if (stats === undefined) return undefined
    return {
      kind: kindOf(stats),
      mode: Number(stats.mode),
      links: Number(stats.nlink),
      size: Number(stats.size),
      id: `${stats.dev} ${stats.ino}`,
    }
  }

  #isForeign(path: string): boolean {
    return this.#foreign.some(place => isWithin(path, place))
  }

  #compare(one: number, other: number, size: number): boolean {
    const [first, second] = [Buffer.alloc(PIECE), Buffer.alloc(PIECE)]
    for (let at = 0; at < size; at += PIECE) {
      this.#compared += PIECE
      if (this.#compared > MAX_COMPARED) return true
      const lengths = [readSync(one, first, 0, PIECE, at), readSync(other, second, 0, PIECE, at)]
      if (lengths[0] !== lengths[1] || !first.equals(second)) return false
    }
    return true
  }

  /** Only a regular file: a pipe would block, and opening a device has effects. */
  #read<T>(file: string, act: (fd: number) => T): T | undefined {
    if (this.look(file)?.kind !== 'file') return undefined
    return this.#ask(file, at => {
      const fd = openSync(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
      try {
        return act(fd)
      } finally {
        closeSync(fd)
      }
    })
  }

  /** Calls `act` with a path below an open descriptor of the parent directory. No link led there. */
  #ask<T>(path: string, act: (at: string) => T): T | undefined {
    if (this.#isForeign(path)) return undefined
    const directory = dirname(path)
    if (this.#open?.directory !== directory) {
      this.close()
      this.#open = { directory, fd: tryOpenBeneath(this.#root, directory) }
    }
    if (this.#open.fd === undefined) return undefined
    try {
      return act(`/proc/self/fd/${this.#open.fd}/${basename(path)}`)
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      return undefined
    }
  }
}
