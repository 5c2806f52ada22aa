/**
 * The output of an engine, line by line, safe to show. The build behind it is hostile. Colours and cursor moves are removed,
 * other control characters are escaped, and long lines are cut.
 */
import { printable } from '../base/printable.ts'

const MAX_LINE = 4096
/** A progress bar redraws one line many times. Show it this often. */
const PROGRESS_MS = 1000

// Colours, cursor and erasing (CSI), titles and links (OSC 0 to 2 and 8), character sets.
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
const ORDINARY = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\](?:[0-2]|8);[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]/g

export const shownLine = (line: string): string => printable(line.replace(ORDINARY, ''), MAX_LINE)

export async function eachLine(
  stream: AsyncIterable<Uint8Array>,
  act: (line: string) => void,
  now: () => number = () => performance.now(),
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let drawn = Number.NEGATIVE_INFINITY
  const take = (line: string, end: string): void => {
    const shown = shownLine(line)
    if (shown.trim() === '') return
    // A carriage return: the next line overwrites this one.
    if (end === '\r' && now() - drawn < PROGRESS_MS) return
    if (end === '\r') drawn = now()
    act(shown)
  }
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true })
    for (;;) {
      const found = /\r?\n|\r(?!$)/.exec(rest)
      if (found === null) break
      take(rest.slice(0, found.index), found[0])
      rest = rest.slice(found.index + found[0].length)
    }
    if (rest.length > MAX_LINE) {
      take(rest, '\n')
      rest = ''
    }
  }
  take(rest, '\n')
}
