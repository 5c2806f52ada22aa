/** The prose of the repository: comments and texts of its sources, lines and words of its pages. */
import { list, read } from './sources.ts'

/** Words that this project does not use. In place of the first ten, name the person, the program or the action. */
const UNUSED_WORDS = [
  'told|whoever|whomever|somebody|anew|the like|heed(?:s|ed)?|employ(?:s|ed|er)?|furnish(?:es|ed)?|surroundings',
  // The user `nobody` is a name.
  '(?<!user |`)nobody(?!`)',
  // Renamed: supervisor, fix.
  'keepers?|cures?',
  'there(?:of|in|by|upon)|where(?:by|in)|here(?:by|in)|hence(?:forth)?|forthwith|lest|albeit|whilst|nought',
]
const WORD = new RegExp(`\\b(?:${UNUSED_WORDS.join('|')})\\b`, 'gi')
export const unusedWords = (text: string): string[] => text.match(WORD) ?? []

const TOKEN =
  /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|(?<=^|\s)\/\*[*\s][\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/gm

/** Comments without their marks. Line comments that follow each other are one comment. */
export function commentsOf(text: string): string[] {
  const found: { text: string; end: number }[] = []
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (!/^\/[/*]/.test(token)) continue
    const last = found.at(-1)
    const comment = token.replace(/^\/\*+|\*\/$|^\/\/ ?/g, '').replace(/^\s*\* ?/gm, '')
    const follows =
      token.startsWith('//') && last !== undefined && /^\n[ \t]*$/.test(text.slice(last.end, index))
    if (follows) found[found.length - 1] = { text: `${last.text}\n${comment}`, end: index + token.length }
    else found.push({ text: comment, end: index + token.length })
  }
  return found.map(comment => comment.text)
}

/** Strings of two words or more: what a person reads, and test titles. */
export const textsOf = (text: string): string[] =>
  [...text.matchAll(TOKEN)].map(([token]) => token).filter(token => /^['"`].*[a-z] [a-z]/is.test(token))

/** A sentence ends at a full stop, a blank line, a list item or an indented line. */
export const sentencesOf = (comment: string): string[] =>
  comment
    .split(/[.!?](?=\s|$)|\n\s*\n|\n\s*(?=[-*|@])|\n(?= {2})/)
    .map(sentence => sentence.replace(/\s+/g, ' ').trim())
    .filter(sentence => sentence !== '')

export const wordCount = (sentence: string): number =>
  sentence.split(' ').filter(word => /[a-z0-9]/i.test(word)).length

export const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...list('docs', ['.md'])]

/** Lines of a page that are too long. Tables, code blocks and lines with a link cannot always wrap. */
export function longLines(page: string, columns: number): string[] {
  let fenced = false
  return read(page)
    .split('\n')
    .flatMap((line, i) => {
      if (line.trimStart().startsWith('```')) fenced = !fenced
      const excepted = fenced || /^\s*\|/.test(line) || /\]\(|https?:/.test(line)
      return !excepted && [...line].length > columns ? [`${page}:${i + 1}`] : []
    })
}
