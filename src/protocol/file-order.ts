/** The request to pen's file tool inside a sandbox, as one word of its command line. */
import { protocolError } from './frame.ts'

/** The word after `pen`. */
export const FILE_MODE = '__file'

export type FileOrder = PlainFileOrder | SearchOrder | MatchOrder

export type PlainFileOrder = ContentOrder | DeleteOrder

/** A file, a link or an empty directory. A directory with contents only when `recursive` is set. */
export interface DeleteOrder {
  readonly op: 'delete'
  readonly path: string
  readonly recursive: boolean
}

export type ContentOrder =
  /** Writes at most `length` bytes to stdout. */
  | { readonly op: 'read'; readonly path: string; readonly from: number; readonly length: number }
  /** Replaces the file by what stdin holds. */
  | { readonly op: 'write'; readonly path: string; readonly executable: boolean }
  | { readonly op: 'list'; readonly path: string; readonly most: number }

export interface Wanted {
  /** A regular expression for lines. When empty, only names are searched. */
  readonly pattern: string
  readonly ignoreCase: boolean
  /** Part of a file's path, or with `*` and `?` its whole name. When empty, every file matches. */
  readonly name: string
  readonly most: number
}

export interface SearchOrder extends Wanted {
  readonly op: 'search'
  /** A file, or a directory with everything below it. */
  readonly path: string
}

/** The same for files on stdin: for each file a `GivenFile`, as a line, and its bytes. No file is opened. */
export interface MatchOrder extends Wanted {
  readonly op: 'match'
}

export interface GivenFile {
  readonly path: string
  readonly size: number
}

/** Directories that are searched only when they are named. They are large and rarely wanted. */
export const SKIPPED_DIRECTORIES = ['.git', 'node_modules']
/** Longer files are not searched, and are named in the answer. They are rarely written by hand. */
export const MAX_SEARCHED = 8 * 2 ** 20

/** One line of a search result. */
export interface Match {
  readonly path: string
  /** From 1. It is 0 for a file that was found by its name. */
  readonly line: number
  /** Cut after 400 characters, and then ends with `…`. */
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
  if (shape === undefined) throw protocolError('an unknown request')
  const keys = Object.keys(shape)
  if (Object.keys(fields).length !== keys.length + 1) throw protocolError('a request with other fields')
  for (const key of keys) {
    const field = fields[key]
    const isWhole = typeof field !== 'number' || (Number.isSafeInteger(field) && field >= 0)
    const isWord = typeof field !== 'string' || !field.includes('\0')
    if (typeof field !== shape[key] || !isWhole || !isWord)
      throw protocolError(`a request with an invalid ${key}`)
  }
  return value as FileOrder
}
