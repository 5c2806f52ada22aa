/**
 * Directories whose names are no text (UTF-8). To the kernel and to git such a name is as good as any; listed as text it leads
 * nowhere, so that whatever a sandbox hides behind it would not be found. They are held open, and reached by their descriptors.
 */
import { closeSync, readdirSync } from 'node:fs'
import { openDirectory } from '../base/beneath/beneath.ts'
import { absent } from '../base/beneath/look-at.ts'

/** Stands in a listing for bytes that are no text. */
export const NO_TEXT = '\ufffd'

export const isText = (bytes: Buffer): boolean => Buffer.from(bytes.toString()).equals(bytes)

/** Nobody has so many in good faith, and each takes a descriptor. Others are not entered: see `complete`. */
const MOST = 64

export class NonUtf8Directories {
  readonly #shown = new Map<string, string>()
  readonly #open: number[] = []
  readonly #listed = new Set<string>()
  #complete = true

  /** False when there were more than can be held open, or one that could not be opened. */
  get complete(): boolean {
    return this.#complete
  }

  /** Those directly in it, as paths that lead there for as long as this is open; once for each directory. */
  open(dir: string): string[] {
    if (this.#listed.has(dir)) return []
    this.#listed.add(dir)
    const out: string[] = []
    for (const name of listBytes(dir)) {
      if (isText(name)) {
        // A name may have that very character in it.
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
      // The dot makes it a directory, and not the kernel's link to one.
      const reached = `/proc/self/fd/${fd}/.`
      this.#shown.set(reached, `${this.shown(dir)}/${name}`)
      out.push(reached)
    }
    return out
  }

  /** For people: where it is, as well as that can be written. */
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
