import type { Place } from '../../base/error.ts'
import { readSystemFile } from './system-file.ts'

interface IniValue {
  /** Lower case. Empty before the first section. */
  readonly section: string
  readonly key: string
  readonly value: string
  readonly at: Place
}

/** No values if there is no such file. */
export const readIniFile = (file: string, writable: readonly string[]): IniValue[] =>
  readIni(readSystemFile(file, writable) ?? '', file)

/**
 * The `key = value` lines of npmrc, pip.conf and cargo's config.toml, as far as mirror addresses need them. An indented line
 * continues the previous value, as in pip. Quotes around keys and values are removed.
 */
export function readIni(text: string, file: string): IniValue[] {
  const values: IniValue[] = []
  let section = ''
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const at = { file, line: i + 1, column: 1 }
    const header = /^\s*\[([^\]]*)\]/.exec(line)
    const last = values.at(-1)
    if (/^\s*(?:[#;].*)?$/.test(line)) continue
    if (header !== null) section = unquoted(header[1] ?? '').toLowerCase()
    else if (/^\s/.test(line) && !line.includes('=') && last !== undefined)
      values.push({ section, key: last.key, value: unquoted(line), at })
    else {
      const equals = line.indexOf('=')
      if (equals === -1) continue
      values.push({
        section,
        key: unquoted(line.slice(0, equals)),
        value: unquoted(line.slice(equals + 1)),
        at,
      })
    }
  }
  return values
}

function unquoted(text: string): string {
  const trimmed = text.trim()
  return /^(["'])(.*?)\1(?:\s*#.*)?$/.exec(trimmed)?.[2] ?? trimmed
}
