/**
 * Text that came from a sandbox, a project or a file name is hostile: shown raw it could drive the terminal
 * (escape sequences), forge a log line (newlines) or lie about itself (bidirectional overrides).
 */

// C0, DEL, C1, line and paragraph separators, bidi controls, zero-width and other invisible format characters, lone surrogates.
const HOSTILE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this pattern is for
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\\/g

/** Escapes what a terminal or a log reader could take for something else, and caps the length. Injective up to the cap. */
export function printable(text: string, cap = 400): string {
  const cut = text.length > cap ? text.slice(0, cap) : text
  const escaped = cut.replace(HOSTILE, c => {
    if (c === '\\') return '\\\\'
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  return cut === text ? escaped : `${escaped}… (${text.length} characters)`
}
