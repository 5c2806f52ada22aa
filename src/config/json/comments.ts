/** A string, or a comment. An unclosed comment stays, and the parser refuses it. */
const TOKEN = /"(?:[^"\\\n]|\\.)*"?|\/\/[^\n]*|\/\*[\s\S]*?\*\//g
const STRING_OR_LAST_COMMA = /"(?:[^"\\\n]|\\.)*"?|,(?=\s*[}\]])/g

/**
 * JSON with comments and trailing commas as strict JSON, for files of other programs. Each is replaced by spaces, so offsets
 * stay the same. pen's own config has no comments: see `readJson`.
 */
export const withoutComments = (text: string): string =>
  text
    .replace(TOKEN, part => (part.startsWith('"') ? part : part.replace(/[^\r\n]/g, ' ')))
    .replace(STRING_OR_LAST_COMMA, part => (part === ',' ? ' ' : part))
