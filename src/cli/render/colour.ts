/** Terminal codes by hand: `styleText` of node:util adds 4 ms to every start, and node:tty 8 ms. */
const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const

export type Colour = keyof typeof CODES

/** Colours text that `printable()` has already escaped. */
export type Paint = (colour: Colour, text: string) => string

export const plain: Paint = (_, text) => text

export const painted: Paint = (colour, text) => {
  const [on, off] = CODES[colour]
  return `\u001b[${on}m${text}\u001b[${off}m`
}

type Environment = Readonly<Record<string, string | undefined>>

/** NO_COLOR overrides FORCE_COLOR, and FORCE_COLOR overrides the kind of terminal. */
export function wantsColour(env: Environment, isTerminal: () => boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env
  if (NO_COLOR) return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return TERM !== 'dumb' && isTerminal()
}

/** For colours only: also true for devices such as /dev/null. For prompts use node:tty. */
export function looksLikeTerminal(fd: number): boolean {
  try {
    return process.getBuiltinModule('node:fs').fstatSync(fd).isCharacterDevice()
  } catch {
    return false
  }
}
