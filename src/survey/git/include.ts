/** Whether git follows an `include` or `includeIf` of the user's settings, for one repository. */
import { readFileSync } from 'node:fs'
import { dirname } from '../../base/posix-path.ts'
import type { GitSetting } from './config.ts'
import { readPointer, realPath, repositorySettings } from './directory.ts'

export interface Repository {
  /** Undefined where there is none. */
  readonly gitDir: string | undefined
  readonly home: string
}

export function includeHolds({ key, subsection = '' }: GitSetting, file: string, at: Repository): boolean {
  if (key === 'include.path') return true
  if (key !== 'includeif.path' || at.gitDir === undefined) return false
  const [, kind = '', pattern = ''] =
    /^(gitdir|gitdir\/i|onbranch|hasconfig:remote\.\*\.url):(.+)$/.exec(subsection) ?? []
  switch (kind) {
    case 'gitdir':
    case 'gitdir/i':
      return isIn(at.gitDir, pattern, file, at.home, kind === 'gitdir/i')
    case 'onbranch':
      return matches(withAll(pattern), branchOf(at.gitDir) ?? '')
    case 'hasconfig:remote.*.url':
      return remotesOf(at.gitDir).some(url => matches(pattern, url))
    default:
      return false
  }
}

/** Compares the path itself and its resolved form, as git does. */
function isIn(gitDir: string, pattern: string, file: string, home: string, folds: boolean): boolean {
  const base = pattern.startsWith('~/')
    ? `${realPath(home) ?? home}/${pattern.slice(2)}`
    : pattern.startsWith('./')
      ? `${dirname(realPath(file) ?? file)}/${pattern.slice(2)}`
      : pattern.startsWith('/')
        ? pattern
        : `**/${pattern}`
  return [gitDir, realPath(gitDir) ?? gitDir].some(place => matches(withAll(base), place, folds))
}

const withAll = (pattern: string): string => (pattern.endsWith('/') ? `${pattern}**` : pattern)

/** A star stops at a slash; two of them between slashes do not. */
function matches(pattern: string, text: string, folds = false): boolean {
  const source = pattern.replace(/\*\*\/|\/\*\*$|\*+|\?|[^*?]/g, part => {
    if (part === '**/') return '(?:.*/)?'
    if (part === '/**') return '/.*'
    if (part.startsWith('*')) return '[^/]*'
    return part === '?' ? '[^/]' : part.replace(/[\\^$.|+()[\]{}/]/, '\\$&')
  })
  return new RegExp(`^${source}$`, folds ? 'is' : 's').test(text)
}

function branchOf(gitDir: string): string | undefined {
  try {
    return /^ref: refs\/heads\/(.+)\n?$/.exec(readFileSync(`${gitDir}/HEAD`, 'utf8').slice(0, 4096))?.[1]
  } catch {
    return undefined
  }
}

/** A sandbox may have written it. It can only choose among the user's own identities by it. */
function remotesOf(gitDir: string): readonly string[] {
  const settings = repositorySettings(readPointer(`${gitDir}/commondir`) ?? gitDir, gitDir)
  return settings.flatMap(({ key, value }) => (key === 'remote.url' ? [value] : []))
}
