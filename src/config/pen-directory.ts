/**
 * The project's `.pen/`, opened once. The agent, or whoever made the project, may have put a link in its place or in the
 * place of a file in it, and may be swapping them now: everything is asked of the open directory, and no link is followed.
 */
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
  unlinkSync,
} from 'node:fs'
import { removeLeftovers, writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { MAX_BYTES } from './json/source-text.ts'
import type { DocumentFile } from './layers.ts'

export const DOCUMENTS = ['config.json', 'http-allowlist.txt', 'network-allowlist.txt'] as const
export type DocumentName = (typeof DOCUMENTS)[number] | 'config.schema.json'

/** Longer than a supervisor takes to look. */
const SETTLE_MS = 400

export class PenDirectory {
  readonly path: string
  readonly #workspace: string
  readonly #fd: number
  /** Made just now, where there was none. */
  #isNew: boolean = false

  private constructor(workspace: string, fd: number) {
    this.path = `${workspace}/.pen`
    this.#workspace = workspace
    this.#fd = fd
  }

  /** Undefined where there is none. */
  static open(workspace: string): PenDirectory | undefined {
    const path = `${workspace}/.pen`
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
    try {
      return new PenDirectory(workspace, openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'ENOENT') return undefined
      const isOther = errno === 'ENOTDIR' || errno === 'ELOOP'
      throw new PenError('CONFIG_FILE', {
        what: isOther
          ? `${path} is a link or a file, not a directory`
          : `${path} could not be opened (${errno})`,
        at: path,
        hint: isOther ? 'look at what it is, then put a directory in its place' : 'make it yours to read',
        cause: error,
      })
    }
  }

  static openOrMake(workspace: string): PenDirectory {
    const path = `${workspace}/.pen`
    let isNew = true
    try {
      mkdirSync(path, { mode: 0o755 })
    } catch (error) {
      isNew = false
      if (errnoOf(error) !== 'EEXIST')
        throw new PenError('STATE', {
          what: `could not make ${path} (${errnoOf(error) ?? 'unknown error'})`,
          hint: 'check that the project is yours to write and that the disk is not full',
          cause: error,
        })
    }
    const opened = PenDirectory.open(workspace)
    if (opened !== undefined) {
      opened.#isNew = isNew
      const owner = isNew ? opened.#owner() : undefined
      if (owner !== undefined) fchownSync(opened.#fd, owner.uid, owner.gid)
      return opened
    }
    throw isNew
      ? removedAgain(path)
      : new PenError('STATE', { what: `${path} was removed meanwhile`, hint: 'try again' })
  }

  /** Whoever wrote it: what it says takes effect only when it has been shown and agreed to. */
  read(name: DocumentName): DocumentFile | undefined {
    const file = `${this.path}/${name}`
    const bytes = readRegularFile(this.#at(name), { maxBytes: MAX_BYTES, name: file })
    return bytes === undefined ? undefined : { file, bytes }
  }

  /** The same, and nothing for what is no regular file: for whoever is about to put one in its place. */
  peek(name: DocumentName): Buffer | undefined {
    try {
      return this.read(name)?.bytes
    } catch (error) {
      if (error instanceof PenError) return undefined
      throw error
    }
  }

  /** In one step, in the place of whatever stands there; a link there is replaced. For whoever holds the lock of the live config. */
  write(name: DocumentName, bytes: Uint8Array | string): void {
    removeLeftovers(this.#at(name))
    writeFileAtomically(this.#at(name), bytes, {
      mode: 0o644,
      name: `${this.path}/${name}`,
      owner: this.#owner(),
    })
  }

  /** Whether there was one. */
  remove(name: DocumentName): boolean {
    try {
      unlinkSync(this.#at(name))
      return true
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return false
      throw new PenError('STATE', {
        what: `could not remove ${this.path}/${name} (${errnoOf(error) ?? 'unknown error'})`,
        hint: 'remove it yourself, then try again',
        cause: error,
      })
    }
  }

  /**
   * A sandbox that runs, and was started where there was no `.pen/`, has a supervisor that takes away what appears there: it
   * cannot tell whose it is. So a new one is looked at again before anybody is told that it was written.
   */
  confirmStays(): void {
    if (this.#isNew) confirmPathStays(this.path, fstatSync(this.#fd))
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }

  /** Through the descriptor where the kernel has a way to; elsewhere the name, which nothing in a sandbox can reach at the time. */
  #at(name: string): string {
    return process.platform === 'linux' ? `/proc/self/fd/${this.#fd}/${name}` : `${this.path}/${name}`
  }

  /** Root that works in somebody's project leaves nothing of root's there. */
  #owner(): Owner | undefined {
    return ownerOf(this.#workspace)
  }
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Undefined where that is whoever writes. */
export function ownerOf(workspace: string): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = lstatSync(workspace)
  return uid === 0 ? undefined : { uid, gid }
}

/** Fails when what was made at a protected place is taken away again. */
export function confirmPathStays(path: string, { dev, ino }: Pick<Stats, 'dev' | 'ino'>): void {
  for (let waited = 0; waited < SETTLE_MS; waited += 20) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    const now = lstatSync(path, { throwIfNoEntry: false })
    if (now?.dev === dev && now.ino === ino) continue
    throw removedAgain(path)
  }
}

const removedAgain = (path: string): PenError =>
  new PenError('STATE', {
    what: `${path} was taken away again: a sandbox of this project is running, and nothing may appear there`,
    at: path,
    hint: 'end the sandbox, then try again',
  })
