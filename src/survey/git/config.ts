/**
 * Reads git's configuration format without running git. Every such file may have been written by a sandbox: the parser
 * is bounded, and what it cannot read counts as dangerous.
 */

export interface GitSetting {
  /** `section.variable`, lower case. The subsection is separate, because it is case-sensitive. */
  readonly key: string
  readonly subsection: string | undefined
  readonly value: string
}

export const MAX_GIT_CONFIG = 256 * 1024

/** Undefined when git itself would refuse the text, or when it is too odd to be judged. */
export function parseGitConfig(text: string): readonly GitSetting[] | undefined {
  if (text.length > MAX_GIT_CONFIG || text.includes('\0')) return undefined
  const settings: GitSetting[] = []
  let section: string | undefined
  let subsection: string | undefined
  const lines = text
    .replace(/^\ufeff/, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
  for (let i = 0; i < lines.length; i++) {
    let line = (lines[i] ?? '').trimStart()
    const header = /^\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]/.exec(line)
    if (header !== null) {
      const name = header[1] ?? ''
      const dot = name.indexOf('.')
      section = (dot < 0 ? name : name.slice(0, dot)).toLowerCase()
      subsection = header[2]?.replace(/\\(.)/g, '$1') ?? (dot < 0 ? undefined : name.slice(dot + 1))
      line = line.slice(header[0].length).trimStart()
    }
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue
    const variable = /^([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)/.exec(line)
    if (variable === null || section === undefined) return undefined
    const rest = line.slice(variable[0].length)
    if (variable[2] === '' && rest !== '' && !/^[#;]/.test(rest)) return undefined
    const value = variable[2] === '' ? { text: 'true', lines: 0 } : readValue(rest, lines, i)
    if (value === undefined) return undefined
    i += value.lines
    settings.push({ key: `${section}.${(variable[1] ?? '').toLowerCase()}`, subsection, value: value.text })
  }
  return settings
}

/** Quotes, escapes, comments and continued lines. Trailing blanks outside quotes do not count. */
function readValue(
  first: string,
  lines: readonly string[],
  at: number,
): { text: string; lines: number } | undefined {
  let text = ''
  let kept = 0
  let quoted = false
  let line = first.trimStart()
  let more = 0
  for (let j = 0; ; j++) {
    if (j >= line.length) return quoted ? undefined : { text: text.slice(0, kept), lines: more }
    const c = line[j] ?? ''
    if (c === '\\') {
      if (j === line.length - 1) {
        const next = lines[at + ++more]
        if (next === undefined) return { text: text.slice(0, kept), lines: more }
        line = next
        j = -1
        continue
      }
      const meant = ESCAPES.get(line[++j] ?? '')
      if (meant === undefined) return undefined
      text += meant
      kept = text.length
    } else if (c === '"') {
      quoted = !quoted
      kept = text.length
    } else if (!quoted && (c === '#' || c === ';')) {
      return { text: text.slice(0, kept), lines: more }
    } else {
      text += c
      if (quoted || (c !== ' ' && c !== '\t')) kept = text.length
    }
  }
}

const ESCAPES = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['b', '\b'],
  ['"', '"'],
  ['\\', '\\'],
])

/**
 * Settings that could make git run a program, read another file or work on another directory: all but those known
 * to be harmless. Returned as `key=value`, so that two readings can be compared.
 */
export function riskySettings(settings: readonly GitSetting[]): readonly string[] {
  const remotes = new Set(settings.flatMap(s => (s.key === 'remote.url' ? [s.subsection ?? ''] : [])))
  return settings.filter(s => !isHarmless(s, remotes)).map(showSetting)
}

export const showSetting = ({ key, subsection, value }: GitSetting): string => {
  const dot = key.indexOf('.')
  const name = subsection === undefined ? key : `${key.slice(0, dot)}.${subsection}${key.slice(dot)}`
  return `${name}=${value}`
}

function isHarmless({ key, value }: GitSetting, remotes: ReadonlySet<string>): boolean {
  if (key === 'core.fsmonitor') return /^(true|false|yes|no|on|off|0|1)$/i.test(value)
  if (key === 'remote.url' || key === 'remote.pushurl') return isElsewhere(value)
  // `helper::address` runs git-remote-helper; `ext::` runs anything.
  if (key === 'submodule.url') return !/^[^/]*::/.test(value)
  // A name that is no remote is the path of a repository.
  if (key === 'branch.remote' || key === 'branch.pushremote')
    return value === '.' || remotes.has(value) || isElsewhere(value)
  return HARMLESS.has(key) || HARMLESS_SECTIONS.has(key.slice(0, key.indexOf('.')))
}

/** An address on another machine, by a git protocol. A push to a local directory would run the hooks in it. */
const isElsewhere = (url: string): boolean =>
  /^(?:https?|ssh|git|git\+ssh|ssh\+git):\/\/[^/-]/i.test(url) ||
  /^(?:[\w.+~-]+@)?\w[\w.-]*:(?!:|\/\/)/.test(url)

const HARMLESS_SECTIONS = new Set([
  'advice',
  'branch',
  'color',
  'column',
  'feature',
  'maintenance',
  'pack',
  'status',
  'user',
])

const HARMLESS = new Set([
  ...[
    'repositoryformatversion',
    'filemode',
    'bare',
    'logallrefupdates',
    'ignorecase',
    'precomposeunicode',
    'symlinks',
    'autocrlf',
    'eol',
    'safecrlf',
    'sparsecheckout',
    'sparsecheckoutcone',
    'preloadindex',
    'untrackedcache',
    'abbrev',
    'quotepath',
    'longpaths',
  ].map(name => `core.${name}`),
  ...['fetch', 'tagopt', 'prune', 'mirror', 'promisor', 'partialclonefilter', 'gh-resolved'].map(
    name => `remote.${name}`,
  ),
  ...['objectformat', 'compatobjectformat', 'partialclone', 'refstorage', 'preciousobjects'].map(
    name => `extensions.${name}`,
  ),
  'submodule.active',
  'submodule.recurse',
  'init.defaultbranch',
  'pull.rebase',
  'pull.ff',
  'push.default',
  'push.autosetupremote',
  'fetch.prune',
  'merge.ff',
  'merge.conflictstyle',
  'diff.renames',
  'diff.algorithm',
  'rebase.autostash',
  'rerere.enabled',
  'commit.gpgsign',
  'gc.auto',
  'gc.autodetach',
  'gc.pruneexpire',
  'index.version',
  'index.threads',
  'lfs.repositoryformatversion',
  'lfs.access',
])
