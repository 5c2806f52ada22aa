/** What pen's file tool inside a sandbox is asked for, as one word of its command line. */
import { protocolError } from './frame.ts'

/** The word after `pen`. */
export const FILE_MODE = '__file'

export type FileOrder = PlainFileOrder | SearchOrder | MatchOrder

export type PlainFileOrder = ContentOrder | DeleteOrder

/** A file, a link or an empty directory; with all in it only if that is said. */
export interface DeleteOrder {
  readonly op: 'delete'
  readonly path: string
  readonly recursive: boolean
}

export type ContentOrder =
  /** At most `length` bytes, to stdout. */
  | { readonly op: 'read'; readonly path: string; readonly from: number; readonly length: number }
  /** What stdin holds takes the place of what was there. */
  | { readonly op: 'write'; readonly path: string; readonly executable: boolean }
  | { readonly op: 'list'; readonly path: string; readonly most: number }

export interface Wanted {
  /** A regular expression for lines; empty: names alone are looked for. */
  readonly pattern: string
  readonly ignoreCase: boolean
  /** Part of a file's path, or with `*` and `?` all of its name; empty: every file. */
  readonly name: string
  readonly most: number
}

export interface SearchOrder extends Wanted {
  readonly op: 'search'
  /** A file, or a directory with all below it. */
  readonly path: string
}

/** The same in what stdin holds: for each file a `GivenFile`, as a line, and its bytes. Nothing is opened. */
export interface MatchOrder extends Wanted {
  readonly op: 'match'
}

export interface GivenFile {
  readonly path: string
  readonly size: number
}

/** What is rarely meant, and most of the work: to be searched by naming it. */
export const PASSED_OVER = ['.git', 'node_modules']
/** Longer files are named in the answer, and not searched: nobody wrote them by hand. */
export const MOST_SEARCHED = 8 * 2 ** 20

/** What one line of the answer to a search holds. */
export interface Match {
  readonly path: string
  /** From 1; 0 for a file that was found by its name. */
  readonly line: number
  /** Cut after 400 characters, with `…` at its end. */
  readonly text: string
}

const SHAPES: Readonly<Record<FileOrder['op'], Readonly<Record<string, 'string' | 'number' | 'boolean'>>>> = {
  read: { path: 'string', from: 'number', length: 'number' },
  write: { path: 'string', executable: 'boolean' },
  list: { path: 'string', most: 'number' },
  delete: { path: 'string', recursive: 'boolean' },
  search: { path: 'string', pattern: 'string', ignoreCase: 'boolean', name: 'string', most: 'number' },
  match: { pattern: 'string', ignoreCase: 'boolean', name: 'string', most: 'number' },
}
const LONGEST = 64 * 1024

export const writeFileOrder = (order: FileOrder): string => JSON.stringify(order)

export function readFileOrder(word: string): FileOrder {
  if (word.length > LONGEST) throw protocolError('a request that is too long')
  let value: unknown
  try {
    value = JSON.parse(word)
  } catch {
    throw protocolError('a request that is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw protocolError('no request')
  const fields = value as Record<string, unknown>
  const { op } = fields
  const shape =
    typeof op === 'string' && Object.hasOwn(SHAPES, op) ? SHAPES[op as FileOrder['op']] : undefined
  if (shape === undefined) throw protocolError('a request that nobody knows')
  const keys = Object.keys(shape)
  if (Object.keys(fields).length !== keys.length + 1) throw protocolError('a request with other fields')
  for (const key of keys) {
    const field = fields[key]
    const isWhole = typeof field !== 'number' || (Number.isSafeInteger(field) && field >= 0)
    const isWord = typeof field !== 'string' || !field.includes('\0')
    if (typeof field !== shape[key] || !isWhole || !isWord)
      throw protocolError(`a request whose ${key} is none`)
  }
  return value as FileOrder
}
