/**
 * Every failure that a person may see: a stable code, what happened, where, why, and the fix.
 * Code throws; only `main.ts` prints and exits.
 */

/** A position in a file that a person can open. Lines and columns start at 1; columns count code points. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** Exit codes. See `docs/exit-codes.md`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  timeout: 124,
  pen: 125,
  notExecutable: 126,
  notFound: 127,
} as const

export type ExitCode = number

/** Each code names one kind of failure. The value is the exit code. */
export const ERROR_CODES = {
  USAGE: EXIT.usage,
  CONFIG_FILE: EXIT.usage,
  CONFIG_SYNTAX: EXIT.usage,
  CONFIG_VALUE: EXIT.usage,
  HOST_SYNTAX: EXIT.usage,
  PATH_REFUSED: EXIT.usage,
  MOUNT_SOURCE: EXIT.usage,
  GROUP: EXIT.usage,
  SECRET: EXIT.usage,
  FILE_REFUSED: EXIT.failed,
  GAP: EXIT.pen,
  INSIDE_SANDBOX: EXIT.pen,
  STATE: EXIT.pen,
  MISSING_TOOL: EXIT.pen,
  BACKEND: EXIT.pen,
  IMAGE: EXIT.pen,
  LIMIT: EXIT.pen,
  WIRE: EXIT.pen,
  REFUSED: EXIT.notExecutable,
  CONNECT: EXIT.failed,
  INTERNAL: EXIT.pen,
} as const

export type ErrorCode = keyof typeof ERROR_CODES

export interface ErrorDetail {
  /** What happened, in one sentence without a full stop. Hostile text in it is escaped when printed. */
  readonly what: string
  /** Where: a place in a file, or a path, flag or host in words. */
  readonly at?: Place | string
  /** The fix: what the person can do now. */
  readonly hint?: string
  readonly cause?: unknown
}

export class PenError extends Error {
  override readonly name = 'PenError'
  readonly code: ErrorCode
  readonly at: Place | string | undefined
  readonly hint: string | undefined

  constructor(code: ErrorCode, detail: ErrorDetail) {
    super(detail.what, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.at = detail.at
    this.hint = detail.hint
  }

  get exitCode(): ExitCode {
    return ERROR_CODES[this.code]
  }
}

export const showPlace = (place: Place | string): string =>
  typeof place === 'string' ? place : `${place.file}:${place.line}:${place.column}`

/** The name of the system error ("ENOENT") if it is one. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return /^E[A-Z0-9]+$/.test(error.code) ? error.code : undefined
}

/** The same for a message. */
export const errnoText = (error: unknown): string => errnoOf(error) ?? 'unknown error'

const DISK: Readonly<Record<string, readonly [what: string, hint: string]>> = {
  ENOSPC: [
    'there is no space left where pen keeps its state',
    'free some space: `pen gc` removes what pen left behind',
  ],
  EDQUOT: [
    'your quota is used up where pen keeps its state',
    'free some space: `pen gc` removes what pen left behind',
  ],
  EROFS: [
    'pen keeps its state on a file system that cannot be written',
    'set HOME to a directory that you can write',
  ],
}

/** A full or read-only disk gets a clear message, wherever the error occurs. */
export function knownError(error: unknown): unknown {
  const [what, hint] = DISK[errnoOf(error) ?? ''] ?? []
  if (what === undefined || hint === undefined || error instanceof PenError) return error
  const path = (error as { readonly path?: unknown }).path
  return new PenError('STATE', { what, hint, cause: error, ...(typeof path === 'string' && { at: path }) })
}
