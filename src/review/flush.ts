/**
 * Brings what was written to the disk. For many files one flush of the file system takes a fraction of the time of a flush of
 * each: 60 ms against 300 ms for 256 files.
 */
import { closeSync, fsyncSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { systemCall } from '../base/kernel/system-call.ts'

const FEW = 8

/** Takes over open descriptors of files or directories of one file system. */
export class Flush {
  readonly #open: number[] = []
  #hasMany: boolean = false

  add(fd: number): void {
    if (this.#open.length < FEW) this.#open.push(fd)
    else {
      this.#hasMany = true
      closeSync(fd)
    }
  }

  run(): void {
    const [first] = this.#open
    try {
      if (this.#hasMany && first !== undefined) systemCall('syncfs', first)
      else for (const fd of this.#open) sync(fd)
    } finally {
      for (const fd of this.#open.splice(0)) closeSync(fd)
      this.#hasMany = false
    }
  }
}

/** Not every file system can flush a directory. */
function sync(fd: number): void {
  try {
    fsyncSync(fd)
  } catch (error) {
    if (errnoOf(error) !== 'EINVAL') throw error
  }
}
