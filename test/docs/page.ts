/**
 * Reads the commands of a page, so that they can be run. A page shows them in fenced blocks:
 *
 *   ```sh        every line is a command; what follows # is for the reader
 *   ```console   a command after "$ ", then the lines that it prints; … stands for anything
 *
 * A command ends with 0, unless its comment says "exit N". One with "until Ctrl-C" is ended that way. Each
 * block has a new project in /home/you/project. A comment on the line above the block says how else to run it,
 * or why it is not run:
 *
 *   <!-- run: after the block above; in a sandbox; with a container engine -->
 *   <!-- not run: REASON -->
 */

export interface Command {
  readonly line: number
  readonly text: string
  readonly exit: number
  readonly untilInterrupted: boolean
  /** The output that the page shows, or undefined. */
  readonly prints: readonly string[] | undefined
}

const WAYS = ['after the block above', 'in a sandbox', 'with a container engine'] as const
export type Way = (typeof WAYS)[number]

export interface Block {
  readonly line: number
  readonly language: string
  readonly text: readonly string[]
  readonly commands: readonly Command[]
  readonly ways: ReadonlySet<Way>
  readonly notRun: string | undefined
}

const FENCE = /^\s*```\s*(\S*)\s*$/
const RUN = /^\s*<!-- run: (.+) -->$/
const NOT_RUN = /^\s*<!-- not run: (.+) -->$/

export function blocksOf(page: string): Block[] {
  const lines = page.split('\n')
  const blocks: Block[] = []
  for (let i = 0; i < lines.length; i++) {
    const language = FENCE.exec(lines[i] ?? '')?.[1]
    if (language === undefined) continue
    const end = lines.findIndex((line, at) => at > i && FENCE.test(line))
    if (end < 0) throw new Error(`line ${i + 1}: the block does not end`)
    const text = lines.slice(i + 1, end)
    const above = lines[i - 1] ?? ''
    blocks.push({
      line: i + 1,
      language,
      text,
      commands: commandsOf(language, text, i + 2),
      ways: new Set(RUN.exec(above)?.[1]?.split('; ').map(known)),
      notRun: NOT_RUN.exec(above)?.[1],
    })
    i = end
  }
  return blocks
}

function known(word: string): Way {
  const way = WAYS.find(one => one === word)
  if (way === undefined) throw new Error(`no way to run a block: ${word}`)
  return way
}

function commandsOf(language: string, text: readonly string[], first: number): Command[] {
  if (language === 'console') return transcript(text, first)
  if (language !== 'sh') return []
  return text.flatMap((line, i) => {
    // A line that the one before goes on with is a part of it.
    if (/^\s*(#|$)/.test(line) || text[i - 1]?.endsWith('\\') === true) return []
    const end = text.findIndex((part, at) => at >= i && !part.endsWith('\\'))
    const whole = text.slice(i, end < 0 ? undefined : end + 1)
    return [command(whole.map(part => part.replace(/\\$/, '').trim()).join(' '), first + i, undefined)]
  })
}

function transcript(text: readonly string[], first: number): Command[] {
  const starts = text.flatMap((line, i) => (line.startsWith('$ ') ? [i] : []))
  return starts.map((start, n) => {
    const prints = text.slice(start + 1, starts[n + 1] ?? text.length)
    return command((text[start] ?? '').slice(2), first + start, prints)
  })
}

function command(text: string, line: number, prints: readonly string[] | undefined): Command {
  const [, comment = ''] = /\s#\s(.*)$/.exec(text) ?? []
  return {
    line,
    text: text.trim(),
    exit: Number(/\bexit (\d+)\b/.exec(comment)?.[1] ?? 0),
    untilInterrupted: /\buntil Ctrl-C\b/.test(comment),
    prints,
  }
}

/** A pattern for what a page shows: its own words exactly, runs of spaces alike, `…` for anything. */
export function patternOf(prints: readonly string[]): RegExp {
  const words = (line: string) =>
    line
      .trimEnd()
      .split('…')
      .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/ +/g, ' +'))
      .join('[^\\n]*')
  const lines = prints.map(line => (line.trim() === '…' ? '(?:[^\\n]*\\n)*?' : `${words(line)}\\n`))
  return new RegExp(`^${lines.join('')}$`)
}
