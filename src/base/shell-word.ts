/**
 * Quotes hostile text as one shell word of a command that a person copies. Undefined when it holds characters that would
 * not be shown as they are.
 */
export function shellWord(text: string): string | undefined {
  if (!/^[\x20-\x7e]{1,512}$/.test(text)) return undefined
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
