import { PenError } from '../../base/error.ts'
import { join } from '../../base/posix-path.ts'
import type { GroupContext } from '../groups.ts'
import { askTool } from './ask-tool.ts'
import { readIniFile } from './ini-file.ts'
import type { Mirror } from './mirror.ts'

/** The module proxies and the checksum database from `go env -w` and from `go env`. */
export async function goProxies(context: GroupContext): Promise<Mirror[]> {
  const file = join(context.home, '.config/go/env')
  const set = readIniFile(file, context.writable).flatMap(({ key, value, at }) => {
    if (key === 'GOPROXY') return proxies(value, at).map(mirror => ({ ...mirror, setting: key }))
    return key === 'GOSUMDB' ? database(value, at) : []
  })
  const question = { tool: 'go', args: ['env', 'GOPROXY', 'GOSUMDB'], watch: () => [file] }
  const answer = await askTool(question, context)
  if (answer === undefined && set.length > 0) return set
  if (answer === undefined)
    throw new PenError('GROUP', {
      what: 'the group "go" follows go, which is not installed system-wide, and ~/.config/go/env names no proxy',
      at: 'network.groups',
      hint: 'run: go env -w GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)"',
    })
  const [first = '', second = ''] = answer.split('\n')
  const at = 'go env GOPROXY GOSUMDB'
  return [...set, ...proxies(first, at), ...database(second, at)]
}

/** Addresses separated by commas or bars. `direct` and `off` are not addresses. */
function proxies(text: string, at: Mirror['at']): Mirror[] {
  const words = text.split(/[,|]/).map(word => word.trim())
  return words.filter(word => !['', 'direct', 'off'].includes(word)).map(url => ({ url, at }))
}

/** `NAME`, `NAME+KEY` or `NAME+KEY URL`. */
function database(text: string, at: Mirror['at']): Mirror[] {
  const [name = '', url] = text.trim().split(/\s+/)
  if (name === '' || name === 'off') return []
  return [{ url: url ?? `https://${name.split('+')[0]}`, at }]
}
