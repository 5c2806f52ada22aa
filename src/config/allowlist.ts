/**
 * The text files beside `config.json`: `http-allowlist.txt` and `network-allowlist.txt`, one entry per line.
 * Only lines are read here; the host grammar checks the entries. The files are untrusted like `config.json`. One bad line
 * refuses the whole file, because a skipped line would be a rule that is silently missing.
 */
import type { Place } from '../base/error.ts'
import { codePoint, findDisruptive, nameHidden } from './hidden.ts'
import { decodeText, type SourceText } from './json/source-text.ts'

/** A word of visible ASCII, not checked further, and its place. */
export interface Entry {
  readonly text: string
  readonly place: Place
}

export const MAX_ENTRIES = 4096

/** Throws `CONFIG_SYNTAX` with the place and the fix. */
export function readAllowlist(bytes: Uint8Array, file: string): Entry[] {
  const source = decodeText(bytes, file)
  const entries: Entry[] = []
  let start = 0
  for (const ended of source.text.split('\n')) {
    const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended
    const entry = readLine(source, start, line)
    if (entry !== undefined) {
      if (entries.length === MAX_ENTRIES)
        throw source.refusal(start, `more than ${MAX_ENTRIES} entries`, 'use a wildcard, or fewer entries')
      entries.push(entry)
    }
    start += ended.length + 1
  }
  return entries
}

function readLine(source: SourceText, start: number, line: string): Entry | undefined {
  const comment = line.search(/(?:^|[ \t])#/)
  const content = comment < 0 ? line : line.slice(0, comment)
  // A comment grants nothing, but a person reads it. It must not change how the line beside it is displayed.
  const disruptive = findDisruptive(line.replaceAll('\t', ' '))
  if (disruptive >= 0)
    throw source.refusal(start + disruptive, `${nameHidden(line, disruptive)} in a line`, 'delete it')

  const isBlank = (at: number) => content[at] === ' ' || content[at] === '\t'
  let indent = 0
  let end = content.length
  while (isBlank(indent)) indent++
  while (end > indent && isBlank(end - 1)) end--
  if (end === indent) return undefined
  const text = content.slice(indent, end)
  const odd = text.search(/[^!-~]/)
  if (odd >= 0) {
    const at = start + indent + odd
    if (isBlank(indent + odd))
      throw source.refusal(
        at,
        'white space inside an entry',
        'write one entry a line, comments after " #", and rules with methods into config.json',
      )
    throw source.refusal(
      at,
      `${codePoint(text, odd)} is not ASCII`,
      'write the name in ASCII (xn--… if it is international)',
    )
  }
  const hash = text.indexOf('#')
  if (hash >= 0)
    throw source.refusal(start + indent + hash, '# inside an entry', 'put a space before a comment')
  return { text, place: source.placeAt(start + indent) }
}
