/**
 * A copy of the files that a project's Dockerfile may COPY. The engine, which may be root, never walks the project itself: while it
 * does, a sandbox that runs could put a link in the place of a directory. Links are copied as links, what the policy denies
 * is left out, because whatever is in an image can be read in the sandbox.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { decideFile } from '../policy/decide-file.ts'
import { type HostPath, isWithin } from '../policy/path.ts'
import type { Policy } from '../policy/policy.ts'
import { at, itself } from './beneath.ts'

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants

const MAX_FILES = 200_000
const MAX_BYTES = 4 * 2 ** 30
const MAX_DEPTH = 128

export interface CopiedContext {
  readonly files: number
  readonly bytes: number
  /** Relative to the context; the first of them only. */
  readonly denied: readonly string[]
}

/** `to` must be an empty directory of our own. */
export function copyContext(policy: Policy, from: string, to: string): CopiedContext {
  if (!isWithin(from, policy.workspace))
    throw new PenError('CONFIG_VALUE', {
      what: `the build context ${from} is outside of the project`,
      at: 'image.context',
      hint: 'name a directory of the project',
    })
  const copy = new ContextCopy(policy)
  const root = open(from)
  if (root === undefined)
    throw new PenError('CONFIG_VALUE', {
      what: `the build context ${from} is no directory`,
      at: 'image.context',
      hint: 'name a directory of the project',
    })
  try {
    copy.directory(root, from, to, 0)
  } finally {
    closeSync(root)
  }
  return copy
}

function open(path: string | Buffer): number | undefined {
  try {
    return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

class ContextCopy implements CopiedContext {
  files = 0
  bytes = 0
  readonly denied: string[] = []
  readonly #policy: Policy

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** Everything is asked of the open directory: its name may lead elsewhere by now. */
  directory(fd: number, path: string, to: string, depth: number): void {
    if (depth > MAX_DEPTH) throw tooMuch(`is deeper than ${MAX_DEPTH} directories`)
    for (const entry of readdirSync(itself(fd), { withFileTypes: true })) {
      const place = `${path}/${entry.name}`
      this.files += 1
      if (this.files > MAX_FILES) throw tooMuch(`has more than ${MAX_FILES} files`)
      if (!this.#mayRead(place)) {
        if (this.denied.length < 20) this.denied.push(place.slice(this.#policy.workspace.length + 1))
        continue
      }
      if (entry.isDirectory()) this.#enter(fd, entry.name, place, `${to}/${entry.name}`, depth)
      else if (entry.isSymbolicLink()) link(at(fd, entry.name), `${to}/${entry.name}`)
      else if (entry.isFile()) this.#file(at(fd, entry.name), `${to}/${entry.name}`)
    }
  }

  #mayRead(path: string): boolean {
    const verdict = decideFile(this.#policy, path as HostPath, 'read')
    return verdict.ok
  }

  #enter(fd: number, name: string, path: string, to: string, depth: number): void {
    const next = open(at(fd, name))
    if (next === undefined) return
    try {
      mkdirSync(to, { mode: 0o755 })
      this.directory(next, path, to, depth + 1)
    } finally {
      closeSync(next)
    }
  }

  #file(from: string | Buffer, to: string): void {
    let fd: number
    try {
      fd = openSync(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    } catch (error) {
      // Replaced meanwhile, or not ours to read: the engine says what it misses.
      if (errnoOf(error) === undefined) throw error
      return
    }
    try {
      const stats = fstatSync(fd)
      if (!stats.isFile()) return
      this.bytes += stats.size
      if (this.bytes > MAX_BYTES) throw tooMuch('is larger than 4 GiB')
      copyFileSync(itself(fd), to, constants.COPYFILE_FICLONE)
      const copied = openSync(to, O_RDONLY)
      try {
        fchmodSync(copied, (stats.mode & 0o111) === 0 ? 0o644 : 0o755)
      } finally {
        closeSync(copied)
      }
    } finally {
      closeSync(fd)
    }
  }
}

/** Where it leads is for the build to find out, inside. */
function link(from: string | Buffer, to: string): void {
  try {
    symlinkSync(readlinkSync(from), to)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
}

const tooMuch = (what: string): PenError =>
  new PenError('CONFIG_VALUE', {
    what: `the build context ${what}`,
    at: 'image.context',
    hint: 'name a smaller directory of the project',
  })
