import { PenError, type Place } from '../../base/error.ts'
import { join } from '../../base/posix-path.ts'
import type { GroupContext } from '../groups.ts'
import type { Mirror } from './mirror.ts'
import { listSystemDirectory, readSystemFile } from './system-file.ts'

/** The addresses in apt's sources: one-line (`.list`) and deb822 (`.sources`) files, and mirror lists that they reference. */
export function aptSources(context: GroupContext): Mirror[] {
  const directory = join(context.etc ?? '/etc', 'apt')
  const parts = join(directory, 'sources.list.d')
  const files = [
    join(directory, 'sources.list'),
    ...listSystemDirectory(parts).map(name => join(parts, name)),
  ]
  const read = (file: string): string => readSystemFile(file, context.writable) ?? ''
  const mirrors = files.flatMap(file => {
    if (file.endsWith('.list')) return oneLineSources(read(file), file)
    return file.endsWith('.sources') ? deb822Sources(read(file), file) : []
  })
  if (mirrors.length === 0)
    throw new PenError('GROUP', {
      what: 'the group follows the sources of apt, and there are none on this machine',
      at: directory,
      hint: 'take the group out of network.groups, or allow the mirror with pen allow',
    })
  return mirrors.flatMap(mirror => {
    const list = /^mirror\+file:(?:\/\/)?(\/.*)$/.exec(mirror.url)?.[1]
    return list === undefined ? [mirror] : mirrorList(read(list), list)
  })
}

/** `deb [options] URI suite components`. The options may contain spaces. */
export function oneLineSources(text: string, file: string): Mirror[] {
  return numbered(text, file).flatMap(({ line, at }) => {
    const url = /^\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s*)?([^\s#]+)/.exec(line)?.[1]
    return url === undefined ? [] : [{ url, at }]
  })
}

/** Stanzas of `Field: value`, with indented continuation lines. A stanza can be disabled. */
export function deb822Sources(text: string, file: string): Mirror[] {
  const mirrors: Mirror[] = []
  let stanza: Mirror[] = []
  let isEnabled = true
  let field = ''
  for (const { line, at } of [...numbered(text, file), { line: '', at: file }]) {
    if (line.startsWith('#')) continue
    if (line.trim() === '') {
      if (isEnabled) mirrors.push(...stanza)
      stanza = []
      isEnabled = true
      field = ''
      continue
    }
    const start = /^([A-Za-z][A-Za-z0-9-]*):(.*)$/.exec(line)
    if (start !== null) field = (start[1] ?? '').toLowerCase()
    const words = (start?.[2] ?? line).split(/\s+/).filter(word => word !== '')
    if (field === 'uris') stanza.push(...words.map(url => ({ url, at })))
    if (field === 'enabled')
      isEnabled = !words.some(word => /^(?:no|false|0|off|without|disable)$/i.test(word))
  }
  return mirrors
}

/** One address per line, options after a tab. */
function mirrorList(text: string, file: string): Mirror[] {
  return numbered(text, file).flatMap(({ line, at }) => {
    const url = /^\s*([^\s#]+)/.exec(line)?.[1]
    return url === undefined ? [] : [{ url, at }]
  })
}

function numbered(text: string, file: string): { line: string; at: Place }[] {
  return text.split(/\r?\n/).map((line, i) => ({ line, at: { file, line: i + 1, column: 1 } }))
}
