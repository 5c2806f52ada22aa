/**
 * An open directory in a tree that hostile programs change at the same time. Each step opens one name without following
 * a link, so the result is always about the path that was judged.
 */
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { openCanonical } from '../../../base/beneath/open-beneath.ts'
import { type Judge, removeInSteps } from '../../../base/beneath/remove-tree.ts'
import { errnoOf } from '../../../base/error.ts'
import { O_PATH } from '../../../base/kernel/descriptor.ts'
import type { HostPath } from '../../../policy/files/path.ts'
import { ActionFailed } from './refused.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** macOS: no component of the path may be a link. */
const O_NOFOLLOW_ANY = 0x2000_0000

const onLinux = process.platform === 'linux'
const ENTER = onLinux ? O_PATH | O_DIRECTORY | O_NOFOLLOW : O_RDONLY | O_DIRECTORY | O_NOFOLLOW_ANY
const STAY = onLinux ? O_NOFOLLOW : O_NOFOLLOW_ANY

export class Directory {
  readonly path: string
  readonly #fd: number

  private constructor(fd: number, path: string) {
    this.#fd = fd
    this.path = path
  }

  /** Throws ELOOP or ENOTDIR when a link is anywhere in the path. */
  static open(path: HostPath): Directory {
    const fd = onLinux ? openCanonical(path) : openSync(path, ENTER)
    return new Directory(fd, path === '/' ? '' : path)
  }

  enter(name: string): Directory {
    return new Directory(openSync(this.#at(name), ENTER), `${this.path}/${name}`)
  }

  /** Does not block on a pipe. The caller must check the kind of the file. */
  openFile(name: string, flags: number, mode?: number): number {
    return openSync(this.#at(name), flags | STAY | O_NONBLOCK, mode)
  }

  /** Describes the name itself, also when it is a link. */
  look(name: string): BigIntStats | undefined {
    try {
      return lstatSync(this.#at(name), { bigint: true, throwIfNoEntry: false })
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      return undefined
    }
  }

  stats(): BigIntStats {
    return fstatSync(this.#fd, { bigint: true })
  }

  names(): string[] {
    return readdirSync(this.#at('.'))
  }

  /** False when the name exists. */
  make(name: string): boolean {
    try {
      mkdirSync(this.#at(name), { mode: 0o755 })
      return true
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false
      throw error
    }
  }

  rename(from: string, to: string): void {
    renameSync(this.#at(from), this.#at(to))
  }

  unlink(name: string): void {
    unlinkSync(this.#at(name))
  }

  removeEmpty(name: string): void {
    rmdirSync(this.#at(name))
  }

  /** With its contents. `judge` is called before each name goes, with the attributes of its directory. */
  removeTree(name: string, judge: (path: HostPath, directory: BigIntStats) => void): void {
    if (!onLinux)
      throw new ActionFailed('ENOSYS', {
        what: 'pen deletes a directory with its contents only on Linux',
        at: `${this.path}/${name}`,
        hint: 'delete its parts one by one',
      })
    const check: Judge = (directory, path) =>
      judge(`${this.path}/${path}` as HostPath, fstatSync(directory, { bigint: true }))
    for (const _ of removeInSteps(this.#fd, name, check));
  }

  close(): void {
    closeSync(this.#fd)
  }

  /** On Linux a path through the open descriptor. Elsewhere the path itself, which `STAY` protects on opening. */
  #at(name: string): string {
    return onLinux ? `/proc/self/fd/${this.#fd}/${name}` : `${this.path}/${name}`
  }
}

export const namesOf = (path: string): string[] => path.split('/').filter(name => name !== '')

export interface ReadBytes {
  readonly bytes: Uint8Array
  readonly truncated: boolean
}

/** Reads at most `most` bytes of an open file. */
export function readUpTo(fd: number, from: number, most: number): ReadBytes {
  const parts: Buffer[] = []
  let size = 0
  for (;;) {
    const part = Buffer.alloc(Math.min(65_536, most - size + 1))
    const got = readSync(fd, part, 0, part.length, from + size)
    if (got === 0) return { bytes: Buffer.concat(parts), truncated: false }
    size += got
    parts.push(part.subarray(0, got))
    if (size > most) return { bytes: Buffer.concat(parts).subarray(0, most), truncated: true }
  }
}
