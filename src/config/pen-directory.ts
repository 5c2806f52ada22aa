/**
 * The project's `.pen/`, opened once. An agent or the project's author may replace it, or a file in it, with a link at any
 * time. So every access goes through the open directory, and no link is followed.
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
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { MAX_BYTES } from './json/source-text.ts'
import type { DocumentFile } from './layers.ts'

export const DOCUMENTS = ['config.json', 'http-allowlist.txt', 'network-allowlist.txt'] as const
type DocumentName = (typeof DOCUMENTS)[number] | 'config.schema.json'

/** Longer than a supervisor needs to notice a new file. */
const SETTLE_MS = 400

export class PenDirectory {
  readonly path: string
  readonly #workspace: string
  readonly #fd: number
  /** Whether this process created the directory. */
  #isNew: boolean = false

  private constructor(workspace: string, fd: number) {
    this.path = `${workspace}/.pen`
    this.#workspace = workspace
    this.#fd = fd
  }

  /** Undefined if there is none. */
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
        hint: isOther ? 'inspect it, then replace it with a directory' : 'make it readable',
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
          what: `could not make ${path} (${errnoText(error)})`,
          hint: 'check that you can write in the project and that the disk is not full',
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
      : new PenError('STATE', { what: `${path} was removed in the meantime`, hint: 'try again' })
  }

  /** Any author is accepted: the content takes effect only after the user reviewed it. */
  read(name: DocumentName): DocumentFile | undefined {
    const file = `${this.path}/${name}`
    const bytes = readRegularFile(this.#at(name), { maxBytes: MAX_BYTES, name: file })
    return bytes === undefined ? undefined : { file, bytes }
  }

  /** Like `read`, but undefined for anything except a regular file. For a caller that will replace it. */
  peek(name: DocumentName): Buffer | undefined {
    try {
      return this.read(name)?.bytes
    } catch (error) {
      if (error instanceof PenError) return undefined
      throw error
    }
  }

  /** Replaces the file, or a link in its place, atomically. The caller holds the lock of the live config. */
  write(name: DocumentName, bytes: Uint8Array | string): void {
    removeLeftovers(this.#at(name))
    writeFileAtomically(this.#at(name), bytes, {
      mode: 0o644,
      name: `${this.path}/${name}`,
      owner: this.#owner(),
    })
  }

  /** Returns whether the file existed. */
  remove(name: DocumentName): boolean {
    try {
      unlinkSync(this.#at(name))
      return true
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return false
      throw new PenError('STATE', {
        what: `could not remove ${this.path}/${name} (${errnoText(error)})`,
        hint: 'remove it yourself, then try again',
        cause: error,
      })
    }
  }

  /**
   * A running sandbox that started without `.pen/` has a supervisor that quarantines everything that appears there, also what the user
   * creates. So check that a new directory stays before reporting success.
   */
  confirmStays(): void {
    if (this.#isNew) confirmPathStays(this.path, fstatSync(this.#fd))
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }

  /** A path through the descriptor on Linux. Elsewhere the plain path, which no running sandbox can change. */
  #at(name: string): string {
    return process.platform === 'linux' ? `/proc/self/fd/${this.#fd}/${name}` : `${this.path}/${name}`
  }

  /** Root must not leave root-owned files in a user's project. */
  #owner(): Owner | undefined {
    return ownerOf(this.#workspace)
  }
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Undefined when the writer is the owner. */
export function ownerOf(workspace: string): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = lstatSync(workspace)
  return uid === 0 ? undefined : { uid, gid }
}

/** Throws when a supervisor removes what was created at a protected place. */
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
    what: `${path} was removed again: a sandbox of this project is running and protects that path`,
    at: path,
    hint: 'stop the sandbox, then try again: pen stop',
  })
