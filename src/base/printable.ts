/**
 * Text from a sandbox, a project or a file name is hostile. Shown raw, it could control the terminal (escape sequences),
 * forge a log line (newlines) or look like other text (bidirectional overrides, invisible letters).
 */

// Controls, invisible format characters and bidi overrides, line and paragraph separators, lone surrogates. Then code
// points that Unicode calls letters, marks or unassigned, but no font draws: joiners, fillers, tags, variation selectors.
const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/gu

const spell = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`

/** Escapes everything that a terminal or a log reader could misread, and caps the length. Injective up to the cap. */
export function printable(text: string, cap = 400): string {
  const cut = text.length > cap ? text.slice(0, cap) : text
  const escaped = cut.replaceAll('\\', '\\\\').replace(HOSTILE, c => {
    const code = c.codePointAt(0) ?? 0
    return code > 0xffff ? `\\u{${code.toString(16)}}` : spell(code)
  })
  return cut === text ? escaped : `${escaped}… (${text.length} characters)`
}

/** JSON that cannot control a terminal: strings keep their value, with `\uXXXX` for hostile characters. */
export function printableJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent) ?? 'null'
  return text.replace(HOSTILE, c =>
    c === '\n' ? c : Array.from(c.split(''), u => spell(u.charCodeAt(0))).join(''),
  )
}

/** A line of a source file for a person: backslashes and tabs as they are, and hostile characters as `<U+202E>`. */
export const visible = (line: string): string =>
  line.replace(HOSTILE, c =>
    c === '\t' ? c : `<U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`,
  )

/** The end of a long text: the end of a host name is the part that its owner cannot choose freely. */
export const endOf = (text: string, most: number): string =>
  text.length <= most ? text : `~${text.slice(text.length - Math.max(0, most - 1))}`

/**
 * Hostile text within a sentence of pen's: one plain word stays as it is, and everything else is put in quotes that it
 * cannot close. A path may be a whole sentence with a command that the user must not run.
 */
export function asWord(text: string, cap?: number): string {
  return /^[\w./@%+=:,~[\]-]{1,400}$/.test(text) ? text : inQuotes(printable(text, cap))
}

/** For text that is already escaped. */
export const inQuotes = (printed: string): string => `"${printed.replaceAll('"', '\\u0022')}"`

/**
 * Quotes hostile text as one shell word of a command that a person copies. Undefined when it holds characters that would
 * not be shown as they are.
 */
export function shellWord(text: string): string | undefined {
  if (!/^[\x20-\x7e]{1,512}$/.test(text)) return undefined
  return quoteWord(text)
}

/**
 * One word for sh, bash and zsh, whatever is in it. A quote is quoted by double quotes, because the rules of Codex cannot read a
 * backslash there.
 */
export const quoteWord = (text: string): string =>
  /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`
