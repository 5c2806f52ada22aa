import { PenError } from '../../base/error.ts'
import { join } from '../../base/posix-path.ts'
import type { GroupContext } from '../groups.ts'
import { askTool } from './ask-tool.ts'
import { readIniFile } from './ini-file.ts'
import type { Mirror } from './mirror.ts'

/** Prints pip's default index and its file host. Isolated mode reads nothing from the current directory. */
const DEFAULTS =
  'from pip._internal.models.index import PyPI as p; print(p.simple_url); print("https://" + p.file_storage_domain)'

/** The indexes in the pip and uv configuration of the user and the system, or pip's default. */
export async function pipIndexes(context: GroupContext): Promise<Mirror[]> {
  const etc = context.etc ?? '/etc'
  const files = [
    join(etc, 'xdg/pip/pip.conf'),
    join(etc, 'pip.conf'),
    join(context.home, '.pip/pip.conf'),
    join(context.home, '.config/pip/pip.conf'),
  ]
  const named = files.flatMap(file => readIniFile(file, context.writable))
  const ofUv = uvIndexes(context)
  const indexes = named.filter(({ key }) => normal(key) === 'index-url')
  const extra = named.filter(({ key }) => normal(key) === 'extra-index-url')
  const mirrors = [...indexes, ...extra].flatMap(({ key, value, at }) =>
    value
      .split(/\s+/)
      .filter(word => word !== '')
      .map(url => ({ url, at, setting: normal(key) })),
  )
  if (indexes.length > 0 || ofUv.length > 0) return [...mirrors, ...ofUv]

  const answer = await askTool(
    { tool: 'python3', args: ['-I', '-c', DEFAULTS], watch: () => [] },
    context,
  ).catch((error: unknown) => {
    if (error instanceof PenError && error.code === 'GROUP') return undefined
    throw error
  })
  if (answer === undefined)
    throw new PenError('GROUP', {
      what: 'the group "pypi" follows pip, which is not installed system-wide, and no pip.conf names an index',
      at: 'network.groups',
      hint: 'name the index: pip config --user set global.index-url URL',
    })
  const defaults = answer.split('\n').filter(line => line !== '')
  return [...mirrors, ...defaults.map(url => ({ url, at: 'the defaults of pip' }))]
}

/** uv's own file: `[[index]] url`, `index-url` and `extra-index-url`, at the top or under `[pip]`. */
function uvIndexes(context: GroupContext): Mirror[] {
  const files = [join(context.etc ?? '/etc', 'uv/uv.toml'), join(context.home, '.config/uv/uv.toml')]
  return files
    .flatMap(file => readIniFile(file, context.writable))
    .filter(
      ({ section, key }) =>
        /^(?:extra-)?index-url$/.test(normal(key)) || (section === '[index' && key === 'url'),
    )
    .flatMap(({ value, at }) =>
      Array.from(value.matchAll(/[a-z]+:\/\/[^"'\s,\]]+/gi), ([url]) => ({ url, at })),
    )
}

const normal = (key: string): string => key.toLowerCase().replaceAll('_', '-')
