/** The request to pen's file tool inside a sandbox, as one word of its command line. */
import { type Checked, fromText, operation, truth, whole, word } from './fields.ts'
import { protocolError } from './frame.ts'

/** The word after `pen`. */
export const FILE_MODE = '__file'

/** What is searched for. */
const wanted = {
  /** A regular expression for lines. When empty, only names are searched. */
  pattern: word,
  ignoreCase: truth,
  /** Part of a file's path, or with `*` and `?` its whole name. When empty, every file matches. */
  name: word,
  most: whole,
}

const order = operation({
  /** Writes at most `length` bytes to stdout. */
  read: { path: word, from: whole, length: whole },
  /** Replaces the file by what stdin holds. */
  write: { path: word, executable: truth },
  list: { path: word, most: whole },
  /** A file, a link or an empty directory. A directory with contents only when `recursive` is set. */
  delete: { path: word, recursive: truth },
  /** A file, or a directory with everything below it. */
  search: { path: word, ...wanted },
  /** The same for files on stdin: for each file a `GivenFile`, as a line, and its bytes. No file is opened. */
  match: wanted,
})

export type FileOrder = Checked<typeof order>
export type SearchOrder = Extract<FileOrder, { readonly op: 'search' }>
export type MatchOrder = Extract<FileOrder, { readonly op: 'match' }>
export type Wanted = Omit<MatchOrder, 'op'>
/** Orders for one file or directory. */
export type PlainFileOrder = Exclude<FileOrder, SearchOrder | MatchOrder>
export type ContentOrder = Exclude<PlainFileOrder, { readonly op: 'delete' }>

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

const LONGEST = 64 * 1024

export const writeFileOrder = (order: FileOrder): string => JSON.stringify(order)

export function readFileOrder(text: string): FileOrder {
  if (text.length > LONGEST) throw protocolError('a request that is too long')
  return fromText(Buffer.from(text), order)
}
