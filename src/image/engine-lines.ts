/**
 * What an engine says while it works, line by line, safe to show. The build behind it is hostile: colours and cursor moves, which
 * ordinary programs print, are left out; every other control character is spelled out; a line that never ends is cut.
 */
import { printable } from '../base/printable.ts'

const MAX_LINE = 4096
/** A progress bar is drawn again and again on one line: this often is enough. */
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
    // Goes back to its beginning: the next is drawn over it.
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
