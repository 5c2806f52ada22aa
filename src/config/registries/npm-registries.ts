import { PenError } from '../../base/error.ts'
import { join } from '../../base/posix-path.ts'
import type { GroupContext } from '../groups.ts'
import { askTool } from './ask-tool.ts'
import { readIniFile } from './ini-file.ts'
import type { Mirror } from './mirror.ts'

/**
 * The registries in the user's and the global npmrc, or npm's own default. npm runs in `/`, so a project's `.npmrc` is not
 * read.
 */
export async function npmRegistries(context: GroupContext): Promise<Mirror[]> {
  const userFile = join(context.home, '.npmrc')
  const systemFile = join(context.etc ?? '/etc', 'npmrc')
  const mirrors = [userFile, systemFile].flatMap(file => namedIn(file, context.writable))
  const answer = await askTool(
    {
      tool: 'npm',
      args: ['config', 'get', 'registry', 'globalconfig'],
      watch: text => [userFile, fromAnswer(text, 'globalconfig') ?? ''],
    },
    context,
  ).catch((error: unknown) => {
    // npm does not print an address with a password. The file contains it.
    if (error instanceof PenError && error.code === 'GROUP' && mirrors.some(isDefault)) return undefined
    throw error
  })
  const globalFile = answer === undefined ? undefined : fromAnswer(answer, 'globalconfig')
  if (globalFile !== undefined && ![userFile, systemFile].includes(globalFile))
    mirrors.push(...namedIn(globalFile, context.writable))
  const registry = answer === undefined ? undefined : fromAnswer(answer, 'registry')
  if (registry !== undefined) mirrors.push({ url: registry, at: 'npm config get registry' })
  if (mirrors.length > 0) return mirrors
  throw new PenError('GROUP', {
    what: 'the group "npm" follows npm, which is not installed system-wide, and ~/.npmrc names no registry',
    at: 'network.groups',
    hint: 'run: npm config set registry "$(npm config get registry)"',
  })
}

/** npm treats the rest of the line as a comment, from any position. */
const COMMENT = /(?<!\\)[;#].*$/

const isDefault = ({ setting }: Mirror): boolean => setting === 'registry'

function namedIn(file: string, writable: readonly string[]): Mirror[] {
  return readIniFile(file, writable)
    .filter(({ key }) => key === 'registry' || /^@[^:]+:registry$/.test(key))
    .map(({ key, value, at }) => {
      const url = value.replace(COMMENT, '')
      if (!url.includes('${')) return { url, at, setting: key }
      throw new PenError('GROUP', {
        what: 'a registry is named by an environment variable, which pen does not read',
        at,
        hint: `write the address itself into ${file}`,
      })
    })
}

/** npm prints `key=value` lines when it is asked for more than one key. */
function fromAnswer(answer: string, key: string): string | undefined {
  const line = answer.split('\n').find(candidate => candidate.startsWith(`${key}=`))
  const value = line?.slice(key.length + 1).trim()
  return value === undefined || value === '' || value === 'undefined' || value === 'null' ? undefined : value
}
