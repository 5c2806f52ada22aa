/**
 * The gate: the only way for tools to act when no kernel isolation exists. Every action is judged by the policy,
 * recorded, and then done. Files are opened by descriptors that follow no link. Paths and bytes come from an agent and
 * are hostile. A program that the policy allows is past the gate, and its own actions are not judged. That is why the
 * sandbox is called soft.
 */
import { type BigIntStats, closeSync, constants, fchmodSync, fchownSync, fstatSync } from 'node:fs'
import { errnoOf } from '../../../base/error.ts'
import { basename, dirname } from '../../../base/posix-path.ts'
import { writeAll } from '../../../base/write-all.ts'
import { type HostPath, isWithin } from '../../../policy/files/path.ts'
import { Directory, namesOf, type ReadBytes, readUpTo } from './directory.ts'
import { type Admitted, admit, type ExecOptions, type ExecWorld } from './exec.ts'
import { type FoundFile, filesBelow, type Scope } from './files-below.ts'
import { type Access, FileJudge, type JudgeOptions } from './judge-file.ts'
import { ActionFailed } from './refused.ts'
import { removeTree, requireRm } from './remove-tree.ts'

export { ActionFailed, Refused } from './refused.ts'

export interface GateOptions extends JudgeOptions, Omit<ExecWorld, 'judge'> {
  /** The user that root acts for. Nothing is done that this user could not do. */
  readonly runAs: 'self' | { readonly uid: number; readonly gid: number }
}

interface Listed {
  readonly name: string
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  readonly size: number
}

interface Listing {
  readonly entries: readonly Listed[]
  /** How many names are left out. */
  readonly more: number
}

interface ReadOptions {
  readonly from?: number
  /** Never more than `exec.maxOutput`. */
  readonly maxBytes?: number
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL } = constants
const MAY = { read: 0o4n, write: 0o2n } as const

export class Gate {
  readonly judge: FileJudge
  readonly #options: GateOptions

  constructor(options: GateOptions) {
    this.#options = options
    this.judge = new FileJudge(options)
  }

  async read(text: string, { from = 0, maxBytes = this.#most }: ReadOptions = {}): Promise<ReadBytes> {
    const path = this.judge.find('read', text)
    this.judge.allow('read', path)
    return this.#within('read', path, directory => {
      const fd = directory.openFile(basename(path), O_RDONLY)
      try {
        const stats = fstatSync(fd, { bigint: true })
        if (!stats.isFile()) throw notAFile(path, stats)
        this.requireOwn('read', path, stats)
        return readUpTo(fd, from, Math.min(maxBytes, this.#most))
      } finally {
        closeSync(fd)
      }
    })
  }

  /**
   * Writes a new file and renames it over the old one. A hard link elsewhere keeps the old bytes, and no reader sees a
   * partial file. Missing parents are made.
   */
  async write(text: string, bytes: Uint8Array | string, executable = false): Promise<void> {
    const path = this.judge.find('write', text)
    this.judge.allow('write', path)
    this.#makeParents(path)
    // In a grant outside of the workspace no file becomes executable, because the host could run it.
    const mode = executable && isWithin(path, this.#options.policy().workspace) ? 0o755n : 0o644n
    this.#within('write', path, directory => {
      const name = basename(path)
      const before = directory.look(name)
      if (before?.isSymbolicLink()) throw this.judge.changed('write', path)
      if (before !== undefined && !before.isFile()) throw notAFile(path, before)
      this.requireOwn('write', path, directory.stats())
      if (before !== undefined) this.requireOwn('write', path, before)
      const temporary = `.pen-${crypto.randomUUID()}`
      const fd = directory.openFile(temporary, O_WRONLY | O_CREAT | O_EXCL, 0o600)
      try {
        writeAll(fd, bytes)
        fchmodSync(fd, Number((before?.mode ?? mode) & 0o777n))
        this.#give(fd)
        directory.rename(temporary, name)
      } catch (error) {
        directory.unlink(temporary)
        throw error
      } finally {
        closeSync(fd)
      }
    })
  }

  /** The first `most` names, sorted. The supervisor checks each of them, so the caller sets the limit. */
  async list(text: string, most: number): Promise<Listing> {
    const path = this.judge.find('list', text)
    this.judge.allow('list', path)
    return this.#opened('list', path, path, directory => {
      this.requireOwn('read', path, directory.stats())
      const names = directory.names().sort((a, b) => (a < b ? -1 : 1))
      const entries = names.slice(0, most).flatMap(name => {
        const stats = directory.look(name)
        return stats === undefined ? [] : [{ name, kind: kindOf(stats), size: Number(stats.size) }]
      })
      return { entries, more: Math.max(0, names.length - most) }
    })
  }

  /** The files that a search may read. */
  below(path: string, scope: Scope): Generator<FoundFile> {
    return filesBelow(this, path, scope)
  }

  /** One file, one link or one empty directory. A directory with its contents only when the policy lists `rm`. */
  async delete(text: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<void> {
    const path = this.judge.findName('delete', text)
    if (recursive) requireRm(this.judge, this.#options.policy(), path)
    else this.judge.allow('delete', path)
    this.#within('delete', path, directory => {
      const name = basename(path)
      const stats = directory.look(name)
      if (stats === undefined) throw failure('delete', path, 'ENOENT')
      if (recursive) return removeTree(this, directory, name)
      this.requireOwn('write', path, directory.stats())
      if (stats.isDirectory()) directory.removeEmpty(name)
      else directory.unlink(name)
    })
  }

  /** The caller must start the file that was judged. */
  exec(argv: readonly string[], options?: ExecOptions): Admitted {
    return admit({ ...this.#options, judge: this.judge }, argv, options)
  }

  /** Calls `act` with the path's parent directory. */
  #within<T>(access: Access, path: HostPath, act: (directory: Directory) => T): T {
    return this.#opened(access, path, dirname(path) as HostPath, act)
  }

  #opened<T>(access: Access, path: HostPath, where: HostPath, act: (directory: Directory) => T): T {
    let directory: Directory | undefined
    try {
      directory = Directory.open(where)
      return act(directory)
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'ELOOP' || errno === 'ENOTDIR') throw this.judge.changed(access, path)
      throw errno === undefined ? error : failure(access, path, errno)
    } finally {
      directory?.close()
    }
  }

  #makeParents(path: HostPath): void {
    this.#opened('write', path, '/' as HostPath, root => {
      const open = [root]
      try {
        for (const name of namesOf(dirname(path))) {
          const at = open.at(-1) as Directory
          if (at.look(name) === undefined) {
            this.requireOwn('write', path, at.stats())
            at.make(name)
            const made = at.openFile(name, O_RDONLY)
            this.#give(made)
            closeSync(made)
          }
          open.push(at.enter(name))
        }
      } finally {
        for (const directory of open.slice(1)) directory.close()
      }
    })
  }

  get #most(): number {
    return this.#options.policy().exec.maxOutput
  }

  /** Root does only what the owner of the project may do. */
  requireOwn(what: keyof typeof MAY, path: string, { uid, mode }: BigIntStats): void {
    const { runAs } = this.#options
    if (runAs === 'self' || uid === BigInt(runAs.uid) || (mode & MAY[what]) !== 0n) return
    throw this.judge.notOwn(what, path)
  }

  #give(fd: number): void {
    const { runAs } = this.#options
    if (runAs !== 'self') fchownSync(fd, runAs.uid, runAs.gid)
  }
}

const kindOf = (stats: BigIntStats): Listed['kind'] =>
  stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'link' : 'other'

const notAFile = (path: string, stats: BigIntStats): ActionFailed =>
  new ActionFailed(stats.isDirectory() ? 'EISDIR' : 'EINVAL', {
    what: 'it is not a plain file',
    at: path,
    hint: 'name a file',
  })

const failure = (access: Access, path: string, errno: string): ActionFailed =>
  new ActionFailed(errno, {
    what: `${access} did not work (${errno})`,
    at: path,
    hint:
      errno === 'ENOENT'
        ? 'check the spelling; list the directory'
        : 'list the directory, and look at what is there',
  })
