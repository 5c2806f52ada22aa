/**
 * The user's git identity: `user.name` and `user.email` of the user's settings, and nothing else. pen reads the settings as
 * git does, without running git, because a process would cost every start some milliseconds. Values are quoted.
 */
import { lookAt } from '../../base/beneath/look-at.ts'
import { dirname, resolve } from '../../base/posix-path.ts'
import type { GitSetting } from './config.ts'
import { readGitConfig, readGitFile, realPath } from './directory.ts'
import { includeHolds, type Repository } from './include.ts'

/** git's own limit on nested includes. */
const MAX_DEPTH = 10
const MAX_FILES = 100

type Env = Readonly<Record<string, string | undefined>>

/** The settings for the sandbox's git, as the text of a configuration file; undefined where the user has no identity. */
export function gitIdentity(workspace: string, home: string, env: Env): string | undefined {
  const found = new Map<string, string>()
  let files = 0
  const at: Repository = { gitDir: gitDirOf(workspace), home }
  const take = (file: string, depth: number): void => {
    if (depth > MAX_DEPTH || ++files > MAX_FILES) return
    for (const setting of readGitConfig(realPath(file) ?? file) ?? []) {
      if (isIdentity(setting)) found.set(setting.key, setting.value)
      const included = includeHolds(setting, file, at) ? pathOf(setting.value, file, home) : undefined
      if (included !== undefined) take(included, depth + 1)
    }
  }
  for (const file of configFiles(home, env)) take(file, 0)
  const lines = [...found].flatMap(([key, value]) =>
    value === '' ? [] : [`\t${key.slice('user.'.length)} = ${quoted(value)}`],
  )
  return lines.length === 0 ? undefined : `[user]\n${lines.join('\n')}\n`
}

const isIdentity = ({ key, subsection }: GitSetting): boolean =>
  subsection === undefined && (key === 'user.name' || key === 'user.email')

/** In the order in which git reads them: the last one wins. */
function configFiles(home: string, env: Env): readonly string[] {
  const { GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM, GIT_CONFIG_NOSYSTEM, XDG_CONFIG_HOME } = env
  const isWithout = /^(?:1|true|yes|on)$/i.test(GIT_CONFIG_NOSYSTEM ?? '')
  const global =
    GIT_CONFIG_GLOBAL === undefined
      ? [`${XDG_CONFIG_HOME || `${home}/.config`}/git/config`, `${home}/.gitconfig`]
      : [GIT_CONFIG_GLOBAL]
  return [...(isWithout ? [] : [GIT_CONFIG_SYSTEM ?? '/etc/gitconfig']), ...global].filter(file =>
    file.startsWith('/'),
  )
}

function pathOf(value: string, file: string, home: string): string | undefined {
  if (value.startsWith('~/')) return resolve(home, value.slice(2))
  return value === '' || value.startsWith('~') ? undefined : resolve(dirname(file), value)
}

function gitDirOf(workspace: string): string | undefined {
  const place = `${workspace}/.git`
  const stats = lookAt(place)
  return stats?.isFile() ? readGitFile(place) : stats?.isDirectory() ? place : undefined
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '"': '\\"',
  '\n': '\\n',
  '\t': '\\t',
  '\b': '\\b',
}

/** Inside quotes, git takes every other character literally, except a carriage return at the end of a line. */
const quoted = (value: string): string =>
  `"${value.replaceAll('\r', '').replace(/[\\"\n\t\b]/g, char => ESCAPES[char] ?? '')}"`
