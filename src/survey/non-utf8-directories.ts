/**
 * Directories with non-UTF-8 names. The kernel and git accept such names, but a listing as text cannot open them. A sandbox
 * could hide a repository there. So pen keeps these directories open and reaches them by descriptor.
 */
import { closeSync, readdirSync } from 'node:fs'
import { openDirectory } from '../base/beneath/beneath.ts'
import { absent } from '../base/beneath/look-at.ts'

/** Replaces invalid bytes in a listing. */
export const NO_TEXT = '\ufffd'

export const isText = (bytes: Buffer): boolean => Buffer.from(bytes.toString()).equals(bytes)

/** Each takes a descriptor. More than this is an attack, and the rest is not entered: see `complete`. */
const MOST = 64

export class NonUtf8Directories {
  readonly #shown = new Map<string, string>()
  readonly #open: number[] = []
  readonly #listed = new Set<string>()
  #complete = true

  /** False when there are too many to keep open, or one could not be opened. */
  get complete(): boolean {
    return this.#complete
  }

  /** The non-UTF-8 directories in `dir`, as paths that are valid while this object is open. Each is returned once. */
  open(dir: string): string[] {
    if (this.#listed.has(dir)) return []
    this.#listed.add(dir)
    const out: string[] = []
    for (const name of listBytes(dir)) {
      if (isText(name)) {
        // A valid name may contain that character.
        if (name.includes(NO_TEXT)) out.push(`${dir}/${name}`)
        continue
      }
      const path = Buffer.concat([Buffer.from(`${dir}/`), name])
      if (this.#open.length >= MOST) {
        this.#complete = false
        break
      }
      const fd = openDirectory(path)
      if (fd === undefined) continue
      this.#open.push(fd)
      // The dot names the directory itself, not the kernel's link to it.
      const reached = `/proc/self/fd/${fd}/.`
      this.#shown.set(reached, `${this.shown(dir)}/${name}`)
      out.push(reached)
    }
    return out
  }

  /** The path for messages, with invalid bytes replaced. */
  shown(path: string): string {
    for (const [start, shown] of this.#shown)
      if (path === start || path.startsWith(`${start}/`)) return shown + path.slice(start.length)
    return path
  }

  close(): void {
    for (const fd of this.#open.splice(0)) closeSync(fd)
  }
}

function listBytes(dir: string): Buffer[] {
  try {
    return readdirSync(dir, { encoding: 'buffer' })
  } catch (error) {
    return absent(error, dir) ?? []
  }
}
