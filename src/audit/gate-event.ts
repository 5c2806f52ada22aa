/** What a gate decided: pen itself, asked for one file or one program, where no kernel stands in the way. */

export interface FileAllowed {
  readonly kind: 'file-allowed'
  readonly access: 'read' | 'write' | 'list' | 'delete'
  /** As the gate found it, without links. Hostile. */
  readonly path: string
  readonly rule: string
  readonly from: string
  /** Of a directory with all in it: how many names go. */
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
  /** Cut where it is long. Hostile, unless the user typed it. */
  readonly command: readonly string[]
  /** The file that is executed. */
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
  /** Processes that were seen and could not be ended. */
  readonly survivors: number
}

export type GateEvent = FileAllowed | FileDenied | ToolAllowed | ToolDenied | ToolEnded

const WORDS = 32
const LONGEST = 200

/** What of a command stands in a record: command lines hold whole scripts, and files. A cut shows the real number. */
export const shortCommand = (argv: readonly string[]): string[] => [
  ...argv
    .slice(0, WORDS)
    .map(word => (word.length > LONGEST ? `${word.slice(0, LONGEST)}… (${word.length})` : word)),
  ...(argv.length > WORDS ? [`… (${argv.length})`] : []),
]
