/**
 * Text that came from a sandbox, a project or a file name is hostile: shown raw it could drive the terminal
 * (escape sequences), forge a log line (newlines) or lie about itself (bidirectional overrides, invisible letters).
 */

// Controls, invisible format characters and bidi overrides, line and paragraph separators, lone surrogates,
// then what Unicode calls letters, marks or unassigned but no font draws: joiners, fillers, tags, variation selectors.
const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/gu

const spell = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`

/** Escapes what a terminal or a log reader could take for something else, and caps the length. Injective up to the cap. */
export function printable(text: string, cap = 400): string {
  const cut = text.length > cap ? text.slice(0, cap) : text
  const escaped = cut.replaceAll('\\', '\\\\').replace(HOSTILE, c => {
    const code = c.codePointAt(0) ?? 0
    return code > 0xffff ? `\\u{${code.toString(16)}}` : spell(code)
  })
  return cut === text ? escaped : `${escaped}… (${text.length} characters)`
}

/** JSON that says the same to every reader and cannot drive a terminal: strings keep their value, spelled with `\uXXXX`. */
export function printableJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent) ?? 'null'
  return text.replace(HOSTILE, c =>
    c === '\n' ? c : Array.from(c.split(''), u => spell(u.charCodeAt(0))).join(''),
  )
}

/** The end of a text that is longer than that: of a host name it is the part that its owner cannot choose freely. */
export const endOf = (text: string, most: number): string =>
  text.length <= most ? text : `~${text.slice(text.length - Math.max(0, most - 1))}`

/**
 * Text that a sandbox chose, among pen's own words: as it is where it is one plain word, otherwise in quotes, of which none is its own.
 * A path may be a sentence, with a command in it that nobody should run.
 */
export function asWord(text: string, cap?: number): string {
  return /^[\w./@%+=:,~[\]-]{1,400}$/.test(text) ? text : inQuotes(printable(text, cap))
}

/** For what is spelled out already. */
export const inQuotes = (printed: string): string => `"${printed.replaceAll('"', '\\u0022')}"`
