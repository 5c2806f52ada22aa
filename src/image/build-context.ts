/**
 * Copies the files that a project's Dockerfile may COPY. The engine, which may run as root, never reads the project itself: a
 * running sandbox could replace a directory with a link at that moment. Links that lead out of the context are skipped, because
 * some engines follow them on the host. Denied files are skipped, because everything in an image is readable in the sandbox.
 */
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs'
import { at, itself } from '../base/beneath/beneath.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import { type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants

const MAX_FILES = 200_000
const MAX_BYTES = 4 * 2 ** 30
const MAX_DEPTH = 128

interface CopiedContext {
  /** The skipped paths, relative to the project. */
  readonly denied: readonly string[]
  readonly outsideLinks: readonly string[]
}

/** `to` must be an empty directory of pen's. */
export function copyContext(policy: Policy, from: string, to: string): CopiedContext {
  if (!isWithin(from, policy.workspace))
    throw refused(`${from} is outside of the project`, 'name a directory of the project')
  const copy = new ContextCopy(policy)
  const root = openDirectory(from)
  if (root === undefined) throw refused(`${from} is not a directory`, 'name a directory of the project')
  try {
    copy.directory(root, from, to, 0)
  } finally {
    closeSync(root)
  }
  return copy
}

/** Undefined for a place that was replaced in the meantime or is not readable. The engine reports what is missing. */
function unlessGone<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

const openDirectory = (path: string | Buffer): number | undefined =>
  unlessGone(() => openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW))

class ContextCopy implements CopiedContext {
  #files = 0
  #bytes = 0
  readonly denied: string[] = []
  readonly outsideLinks: string[] = []
  readonly #policy: Policy

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** Every access goes through the open directory, because its path may lead elsewhere by now. */
  directory(fd: number, path: string, to: string, depth: number): void {
    if (depth > MAX_DEPTH) throw tooMuch(`is deeper than ${MAX_DEPTH} directories`)
    for (const entry of readdirSync(itself(fd), { withFileTypes: true })) {
      const place = `${path}/${entry.name}`
      this.#files += 1
      if (this.#files > MAX_FILES) throw tooMuch(`has more than ${MAX_FILES} files`)
      if (!this.#mayRead(place)) {
        this.#leaveOut(this.denied, place)
        continue
      }
      if (entry.isDirectory()) this.#enter(fd, entry.name, place, `${to}/${entry.name}`, depth)
      else if (entry.isSymbolicLink()) {
        if (!link(at(fd, entry.name), `${to}/${entry.name}`, depth)) this.#leaveOut(this.outsideLinks, place)
      } else if (entry.isFile()) this.#file(at(fd, entry.name), `${to}/${entry.name}`)
    }
  }

  #leaveOut(list: string[], path: string): void {
    list.push(path.slice(this.#policy.workspace.length + 1))
  }

  #mayRead(path: string): boolean {
    return decideFile(this.#policy, path as HostPath, 'read').ok
  }

  #enter(fd: number, name: string, path: string, to: string, depth: number): void {
    const next = openDirectory(at(fd, name))
    if (next === undefined) return
    try {
      mkdirSync(to, { mode: 0o755 })
      this.directory(next, path, to, depth + 1)
    } finally {
      closeSync(next)
    }
  }

  #file(from: string | Buffer, to: string): void {
    const fd = unlessGone(() => openSync(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
    if (fd === undefined) return
    try {
      const stats = fstatSync(fd)
      if (!stats.isFile()) return
      this.#bytes += stats.size
      if (this.#bytes > MAX_BYTES) throw tooMuch('is larger than 4 GiB')
      copyFileSync(itself(fd), to, constants.COPYFILE_FICLONE)
      chmodSync(to, (stats.mode & 0o111) === 0 ? 0o644 : 0o755)
    } finally {
      closeSync(fd)
    }
  }
}

/** False for a link that leads out of the context. */
function link(from: string | Buffer, to: string, depth: number): boolean {
  const target = unlessGone(() => readlinkSync(from))
  if (target !== undefined && !staysWithin(target, depth)) return false
  if (target !== undefined) unlessGone(() => symlinkSync(target, to))
  return true
}

/**
 * Accepts `..` only at the start, and only up to the root of the context. Such a link stays inside, even through
 * other accepted links. A `..` after a name would depend on where that name leads.
 */
export function staysWithin(target: string, depth: number): boolean {
  const [, up = '', rest = ''] = /^((?:\.{1,2}(?:\/+|$))*)(.*)$/s.exec(target) ?? []
  if (target === '' || target.startsWith('/') || rest.split('/').includes('..')) return false
  return up.split('/').filter(part => part === '..').length <= depth
}

const refused = (what: string, hint: string): PenError =>
  new PenError('CONFIG_VALUE', { what: `the build context ${what}`, at: 'image.context', hint })

const tooMuch = (what: string): PenError => refused(what, 'name a smaller directory of the project')
