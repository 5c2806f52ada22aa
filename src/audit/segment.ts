import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { errnoOf, errnoText, PenError } from '../base/error.ts'

const FIXES: Readonly<Record<string, string>> = {
  ENOSPC: 'free space on that file system; until then pen makes no connection',
  EDQUOT: 'your disk quota is used up; free space, until then pen makes no connection',
  EFBIG: 'raise the file size limit (ulimit -f)',
  EROFS: 'the file system is mounted read-only: remount it',
  EMFILE: 'raise the limit on open files (ulimit -n)',
  EEXIST: 'a file already has the name of the new audit file; move it away',
  ELOOP: 'a link has the name of the new audit file; remove it',
}

/** One audit file with one writer. It contains only complete lines, even after a failed write. */
export class Segment {
  readonly path: string
  readonly #fd: number
  #size = 0
  #torn: boolean = false

  /** O_EXCL: never writes to a file or link that exists already. */
  constructor(path: string) {
    const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    this.path = path
    try {
      this.#fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    } catch (error) {
      throw notWritten(path, error)
    }
  }

  get size(): number {
    return this.#size
  }

  /** Writes the line and its newline, or nothing. */
  append(line: string): void {
    const bytes = Buffer.from(this.#torn ? `\n${line}\n` : `${line}\n`)
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(this.#fd, bytes, done)
    } catch (error) {
      if (done > 0) this.#removePartialLine()
      throw notWritten(this.path, error)
    }
    this.#torn = false
    this.#size += bytes.length
  }

  /** A full disk may accept part of a line before it reports the error. */
  #removePartialLine(): void {
    try {
      ftruncateSync(this.#fd, this.#size)
    } catch {
      // The next line then starts with a newline, and readers skip the partial line.
      this.#torn = true
      this.#size = fstatSync(this.#fd).size
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

function notWritten(path: string, error: unknown): PenError {
  const errno = errnoOf(error)
  const hint = FIXES[errno ?? '']
  return new PenError('STATE', {
    what: `could not write the audit to ${path} (${errnoText(error)})`,
    ...(hint !== undefined && { hint }),
    cause: error,
  })
}
