/**
 * A text as one word of a shell, for a person to copy: whoever chose it chose nothing else of the command. Undefined where it would
 * not look like itself.
 */
export function shellWord(text: string): string | undefined {
  if (!/^[\x20-\x7e]{1,512}$/.test(text)) return undefined
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
