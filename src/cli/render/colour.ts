/** Written by hand: node:util's styleText costs 4 ms of every start, node:tty 8 ms, this file nothing. */
const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const

export type Colour = keyof typeof CODES

/** Paints text that is already safe to show: `printable()` first, then paint. */
export type Paint = (colour: Colour, text: string) => string

export const plain: Paint = (_, text) => text

export const painted: Paint = (colour, text) => {
  const [on, off] = CODES[colour]
  return `\u001b[${on}m${text}\u001b[${off}m`
}

type Environment = Readonly<Record<string, string | undefined>>

/** NO_COLOR wins over all, FORCE_COLOR over what the terminal is. */
export function wantsColour(env: Environment, isTerminal: () => boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env
  if (NO_COLOR) return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return TERM !== 'dumb' && isTerminal()
}

/** Good enough for colours, where a wrong yes for a device such as /dev/null harms nobody; for prompts use node:tty. */
export function looksLikeTerminal(fd: number): boolean {
  try {
    return process.getBuiltinModule('node:fs').fstatSync(fd).isCharacterDevice()
  } catch {
    return false
  }
}
