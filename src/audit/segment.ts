import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'

const CURES: Readonly<Record<string, string>> = {
  ENOSPC: 'free space on that file system; until then no connection is made',
  EDQUOT: 'your disk quota is used up: free space; until then no connection is made',
  EFBIG: 'raise the file size limit (ulimit -f)',
  EROFS: 'the file system is mounted read-only: remount it',
  EMFILE: 'raise the limit on open files (ulimit -n)',
  EEXIST: 'something stands in the place of a new audit file: move it away',
  ELOOP: 'a link stands in the place of a new audit file: remove it',
}

/** One file of one run, with one writer. It holds whole lines only, whatever goes wrong in between. */
export class Segment {
  readonly path: string
  readonly #fd: number
  #size = 0
  #torn: boolean = false

  /** O_EXCL: a file or link that somebody put there first is never written to. */
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

  /** The line and its newline in one write, or nothing of it. */
  append(line: string): void {
    const bytes = Buffer.from(this.#torn ? `\n${line}\n` : `${line}\n`)
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(this.#fd, bytes, done)
    } catch (error) {
      if (done > 0) this.#cutBack()
      throw notWritten(this.path, error)
    }
    this.#torn = false
    this.#size += bytes.length
  }

  /** A full disk takes part of a line before it says so. */
  #cutBack(): void {
    try {
      ftruncateSync(this.#fd, this.#size)
    } catch {
      // Then the next line begins with a newline, and readers pass over the part that stands alone.
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
  const hint = CURES[errno ?? '']
  return new PenError('STATE', {
    what: `could not write the audit to ${path} (${errno ?? 'unknown error'})`,
    ...(hint !== undefined && { hint }),
    cause: error,
  })
}
