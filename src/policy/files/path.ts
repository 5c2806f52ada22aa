/**
 * Canonical paths. Only `canonicalize()` makes a `HostPath`, so every `HostPath` is absolute, resolved and checked.
 * Pure: the file system is injected as `PathWorld`.
 */
import { PenError } from '../../base/error.ts'
import { type Parsed, refuse } from '../source.ts'

declare const hostPath: unique symbol
declare const guestPath: unique symbol

/** An absolute path on the host: no `.`, `..`, empty or symlinked component. */
export type HostPath = string & { readonly [hostPath]: true }
/** An absolute path as the sandbox sees it: no `.`, `..` or empty component. */
export type GuestPath = string & { readonly [guestPath]: true }

/** `unreachable`: the user may not enter a directory on the way, so pen cannot tell what is there. */
export type PathKind = 'file' | 'directory' | 'other' | 'absent' | 'unreachable'

/** What the file system has at a path, with links resolved. */
export interface Located {
  readonly real: string
  readonly kind: PathKind
}

export interface PathWorld {
  readonly workspace: HostPath
  readonly home: HostPath
  readonly state: HostPath
  /** Resolves every link. For an absent or unreachable path: the real path of the nearest existing ancestor, plus the rest. */
  locate(path: string): Located
}

export type Trust = 'built-in' | 'user' | 'untrusted'

const MAX_PATH = 4096
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this pattern refuses
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** Makes a written path absolute without using the file system. */
export function absolute(text: string, world: Pick<PathWorld, 'workspace' | 'home'>): Parsed<string> {
  if (text === '') return refuse('the path is empty', 'name a file or directory')
  if (text.length > MAX_PATH) return refuse(`the path is longer than ${MAX_PATH} characters`)
  if (CONTROL.test(text))
    return refuse('the path has a control character', 'rename the file, or leave it out')
  if (text.includes('://')) return refuse('the path looks like a URL', 'hosts belong under network.http')
  if (text.startsWith('~') && text !== '~' && !text.startsWith('~/'))
    return refuse('only ~/ is expanded, for your own home', 'write the absolute path')
  if (/\$[A-Za-z_{(]|`/.test(text))
    return refuse(
      'variables and commands are not expanded in paths',
      'write the absolute path, or start it with ~/',
    )
  const expanded = text === '~' || text.startsWith('~/') ? world.home + text.slice(1) : text
  const joined = expanded.startsWith('/') ? expanded : `${world.workspace}/${expanded}`
  return { ok: true, value: normalize(joined) }
}

/** Folds `//`, `/./`, `..` and a trailing slash. `..` at the root stays at the root, as in the kernel. */
export function normalize(path: string): string {
  const out: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') out.pop()
    else out.push(part)
  }
  return `/${out.join('/')}`
}

/** Whether `path` is `root` or below it, compared by whole components. */
export const isWithin = (path: string, root: string): boolean =>
  path === root || (root === '/' ? path.startsWith('/') : path.startsWith(`${root}/`))

/** The specificity of a path: its number of components. */
export const depth = (path: string): number => (path === '/' ? 0 : path.split('/').length - 1)

/** Makes a config path canonical, or says why not. The text may be hostile. */
export function canonicalize(text: string, trust: Trust, world: PathWorld): Parsed<HostPath> {
  const made = absolute(text, world)
  if (!made.ok) return made
  const explicit = text.startsWith('/') || text.startsWith('~')
  if (text.split('/').includes('..') && trust === 'untrusted')
    return refuse('the path contains ".."', 'write it relative to the workspace, without ".."')
  const found = tryLocate(made.value, world)
  if (!found.ok) return found
  const { real } = found.value
  // The user may write an absolute path that leads anywhere. An untrusted document may not. A path inside the workspace may not
  // lead out of it either, even in the user's config: the agent can replace it with a link.
  const isBeneath = isWithin(made.value, world.workspace)
  if ((!explicit || isBeneath || trust === 'untrusted') && !isWithin(real, world.workspace)) {
    const why = isBeneath
      ? `the path is a link that leads out of the workspace, to ${real}`
      : 'the path leads out of the workspace'
    return refuse(why, 'if that is what you want, write the absolute path in your own config')
  }
  return { ok: true, value: real as HostPath }
}

/** Returns a link loop or a name that is too long as a refusal. The caller adds the place in the file. */
export function tryLocate(path: string, world: PathWorld): Parsed<Located> {
  try {
    return { ok: true, value: world.locate(path) }
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return refuse(error.message, 'name a file or directory that can be reached')
  }
}

/** Directories of the running system: sockets, devices, processes. */
const SYSTEM_LIVE = ['/proc', '/sys', '/dev', '/run']

/** Directories that hold a whole system or all users. Granting one would grant everything. */
export const NEVER_GRANTED: readonly string[] = [
  '/',
  '/bin',
  '/boot',
  '/dev',
  '/etc',
  '/home',
  '/lib',
  '/media',
  '/mnt',
  '/opt',
  '/proc',
  '/root',
  '/run',
  '/sbin',
  '/srv',
  '/sys',
  '/tmp',
  '/usr',
  '/Users',
  '/var',
  '/var/tmp',
]

/** Refuses a mount source that shows far too much, or pen's own state. */
export function checkMountSource(path: HostPath, world: PathWorld): Parsed<HostPath> {
  const tooWide = (why: string) => refuse(why, 'name the directory inside it that is needed')
  if (path === '/') return tooWide('the whole disk cannot be granted')
  if (path === world.home) return tooWide('the whole home directory cannot be granted')
  for (const live of SYSTEM_LIVE)
    if (isWithin(path, live)) return refuse(`${live} is the running system and is never mounted`)
  if (path === world.workspace) return { ok: true, value: path }
  if (NEVER_GRANTED.includes(path)) return tooWide(`${path} is a system directory and cannot be granted`)
  if (isWithin(world.workspace, path)) return tooWide('the path is an ancestor of the workspace')
  if (isWithin(world.home, path)) return tooWide('the path is an ancestor of your home directory')
  if (isWithin(world.state, path)) return tooWide("the path is an ancestor of pen's own state")
  if (isWithin(path, world.state)) return refuse("the path is pen's own state and is never mounted")
  return { ok: true, value: path }
}

/** Parses a path inside the sandbox, as written in a config. */
export function guest(text: string): Parsed<GuestPath> {
  if (!text.startsWith('/') || text.length > MAX_PATH || CONTROL.test(text) || text.split('/').includes('..'))
    return refuse('the path inside must be absolute, without ".."', 'write it as /home/agent/…')
  const path = normalize(text)
  for (const taken of ['/', '/proc', '/sys', '/dev', '/usr', '/bin', '/lib', '/lib64', '/sbin'])
    if (path === taken || (taken !== '/' && taken !== '/usr' && isWithin(path, taken)))
      return refuse(`${taken} inside the sandbox is pen's own`, 'choose another place')
  return { ok: true, value: path as GuestPath }
}
