/**
 * The directory that a `.git` file names. The file is in the workspace, so a sandbox may have rewritten it to name another
 * repository of the user. A directory outside is accepted only when it names this workspace in return.
 */
import { realpathSync, statSync } from 'node:fs'
import { lookAt } from '../../base/beneath/look-at.ts'
import { PenError } from '../../base/error.ts'
import { basename, dirname, resolve } from '../../base/posix-path.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { type GitSetting, MAX_GIT_CONFIG, parseGitConfig } from './config.ts'

const MAX_POINTER = 8192

export type GitDir =
  | { readonly kind: 'inside'; readonly gitDir: string }
  | { readonly kind: 'worktree'; readonly gitDir: string; readonly commonDir: string }
  | { readonly kind: 'submodule'; readonly gitDir: string }
  | { readonly kind: 'refused'; readonly why: string }

/** The path that a `.git`, `gitdir` or `commondir` file names, absolute. */
export function readPointer(file: string, prefix = '', base = dirname(file)): string | undefined {
  const text = readText(file, MAX_POINTER)?.replace(/\r?\n$/, '')
  // A non-UTF-8 name read as text leads nowhere, while git would find the directory.
  if (text === undefined || !text.startsWith(prefix) || /[\n\r\0\ufffd]/.test(text)) return undefined
  const named = text.slice(prefix.length)
  return named === '' ? undefined : resolve(base, named)
}

export const readGitFile = (file: string, base = dirname(file)): string | undefined =>
  readPointer(file, 'gitdir: ', base)

/** Where git goes from a gitlink's place: a `.git` file, or an older submodule's `.git` directory, also behind a link. */
export function gitDirAt(place: string): string | undefined {
  const dotGit = realPath(`${place}/.git`)
  if (dotGit === undefined) return undefined
  const stats = lookAt(dotGit)
  return stats?.isDirectory() ? dotGit : stats?.isFile() ? readGitFile(dotGit, place) : undefined
}

export function readGitConfig(file: string): readonly GitSetting[] | undefined {
  const text = readText(file, MAX_GIT_CONFIG)
  return text === undefined ? undefined : parseGitConfig(text)
}

/** Of a repository, and of the worktree that is at `record`. */
export const repositorySettings = (commonDir: string, record = commonDir): readonly GitSetting[] =>
  [`${commonDir}/config`, `${record}/config.worktree`].flatMap(file => readGitConfig(file) ?? [])

/** The working tree that a submodule's settings name. git keeps it in `config.worktree` where worktrees have settings of their own. */
export function workTreeOf(gitDir: string): string | undefined {
  const shared = readGitConfig(`${gitDir}/config`) ?? []
  const split = shared.findLast(({ key }) => key === 'extensions.worktreeconfig')?.value ?? 'false'
  const own = FALSE.test(split) ? [] : (readGitConfig(`${gitDir}/config.worktree`) ?? [])
  const tree = [...shared, ...own].findLast(({ key }) => key === 'core.worktree')?.value
  return tree === undefined ? undefined : resolve(gitDir, tree)
}

const FALSE = /^(?:false|no|off|0|)$/i

/** For settings that matter to a run: an existing file that cannot be read completely stops it. Undefined: not git's format. */
export function requireGitConfig(file: string): readonly GitSetting[] | undefined {
  if (!lookAt(file)?.isFile()) return []
  const bytes = readRegularFile(file, { maxBytes: MAX_GIT_CONFIG })
  return bytes === undefined ? [] : parseGitConfig(bytes.toString('utf8'))
}

/** The user's global git config files. The environment is the user's and trusted. */
export function userConfigFiles(
  home: string,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const { XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM } = env
  const moved = [XDG_CONFIG_HOME && `${XDG_CONFIG_HOME}/git/config`, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM]
  const files = [`${home}/.gitconfig`, `${home}/.config/git/config`, '/etc/gitconfig', ...moved]
  return [...new Set(files)].filter((file): file is string => file?.startsWith('/') === true)
}

/** Keys that lead to hooks, templates of new repositories, included files, and programs that git runs. */
const LEADS =
  /hook|template|include|fsmonitor|filter|textconv|driver|external|command|cmd|helper|program|proxy|pack|update|editor|pager|askpass/i

/** The user's settings, if they can lead to other files. Most cannot, and need no parser. */
export function readUserConfig(file: string): { path: string; settings: readonly GitSetting[] } {
  const path = realPath(file) ?? file
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size > MAX_GIT_CONFIG)
    throw new PenError('CONFIG_FILE', {
      what: `git's settings have more than ${MAX_GIT_CONFIG} bytes, and pen cannot see what they lead to`,
      at: path,
      hint: 'move a part of them into a file that they include',
    })
  const text = readText(path, MAX_GIT_CONFIG)
  const leads = text !== undefined && LEADS.test(text)
  return { path, settings: leads ? (parseGitConfig(text) ?? []) : [] }
}

/** HEAD, objects and refs are what git itself looks for. */
export function looksLikeGitDir(dir: string): boolean {
  const head = lookAt(`${dir}/HEAD`)
  return (
    head !== undefined &&
    !head.isDirectory() &&
    lookAt(`${dir}/objects`)?.isDirectory() === true &&
    lookAt(`${dir}/refs`)?.isDirectory() === true
  )
}

export function resolveGitFile(workspace: string, home: string): GitDir {
  const gitDir = readGitFile(`${workspace}/.git`)
  if (gitDir === undefined) return refused('it is not a "gitdir: …" line')
  if (gitDir.startsWith(`${workspace}/`)) {
    if (realPath(gitDir) !== gitDir)
      return refused('it names no directory, or its path leads through a symbolic link')
    return { kind: 'inside', gitDir }
  }
  const odd = oddDirectory(gitDir, workspace, home)
  if (odd !== undefined) return refused(odd)

  const back = readPointer(`${gitDir}/gitdir`)
  if (back !== undefined) {
    if (back !== `${workspace}/.git`) return refused('that directory belongs to another worktree')
    const commonDir = readPointer(`${gitDir}/commondir`)
    if (commonDir === undefined || dirname(gitDir) !== `${commonDir}/worktrees` || basename(gitDir) === '')
      return refused('that directory is not in the worktrees of its repository')
    const oddCommon = oddDirectory(commonDir, workspace, home)
    if (oddCommon !== undefined) return refused(oddCommon)
    if (!looksLikeGitDir(commonDir)) return refused('the repository that it belongs to is not one')
    return { kind: 'worktree', gitDir, commonDir }
  }

  if (!looksLikeGitDir(gitDir)) return refused('there is no repository there')
  if (workTreeOf(gitDir) !== workspace)
    return refused('that repository does not name this directory as its working tree')
  return { kind: 'submodule', gitDir }
}

function oddDirectory(dir: string, workspace: string, home: string): string | undefined {
  if ([workspace, home].some(place => place === dir || place.startsWith(dir === '/' ? '/' : `${dir}/`)))
    return 'it names a directory above the workspace or the home directory'
  const stats = lookAt(dir)
  if (stats === undefined) return 'it names a directory that does not exist'
  if (!stats.isDirectory()) return 'it does not name a directory'
  if (stats.uid !== lookAt(workspace)?.uid) return 'that directory belongs to another user'
  return realPath(dir) === dir ? undefined : 'its path leads through a symbolic link'
}

export function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

const refused = (why: string): GitDir => ({ kind: 'refused', why })

// Anything but a small, readable regular file gives no answer, and each caller then refuses.
function readText(file: string, maxBytes: number): string | undefined {
  try {
    return readRegularFile(file, { maxBytes })?.toString('utf8')
  } catch {
    return undefined
  }
}
