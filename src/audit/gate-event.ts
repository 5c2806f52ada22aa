/** Decisions of the gate in the soft backend, where pen checks files and programs instead of the kernel. */

export interface FileAllowed {
  readonly kind: 'file-allowed'
  readonly access: 'read' | 'write' | 'list' | 'delete'
  /** With links resolved. Hostile. */
  readonly path: string
  readonly rule: string
  readonly from: string
  /** Number of entries, when a whole directory is deleted. */
  readonly names?: number | undefined
}

export interface FileDenied {
  readonly kind: 'file-denied'
  readonly access: 'read' | 'write' | 'list' | 'delete'
  readonly path: string
  readonly reason: string
  readonly why: string
  readonly rule?: string | undefined
  readonly from?: string | undefined
  readonly fix: string
}

export interface ToolAllowed {
  readonly kind: 'tool-allowed'
  /** Shortened. Hostile, unless the user typed it. */
  readonly command: readonly string[]
  /** The executed file. */
  readonly program: string
  readonly rule: string
  readonly from: string
}

export interface ToolDenied {
  readonly kind: 'tool-denied'
  readonly command: readonly string[]
  readonly reason: string
  readonly why: string
  readonly fix: string
}

export interface ToolEnded {
  readonly kind: 'tool-ended'
  readonly command: readonly string[]
  readonly exitCode: number
  readonly ms: number
  readonly timedOut: boolean
  readonly truncated: boolean
  /** Processes that pen could not end. */
  readonly survivors: number
}

export type GateEvent = FileAllowed | FileDenied | ToolAllowed | ToolDenied | ToolEnded

const MAX_WORDS = 32
const MAX_WORD_LENGTH = 200

/** Shortens a command for a record, because it may contain whole scripts. A cut shows the real length. */
export const shortCommand = (argv: readonly string[]): string[] => [
  ...argv
    .slice(0, MAX_WORDS)
    .map(word =>
      word.length > MAX_WORD_LENGTH ? `${word.slice(0, MAX_WORD_LENGTH)}… (${word.length})` : word,
    ),
  ...(argv.length > MAX_WORDS ? [`… (${argv.length})`] : []),
]
