/** The directories of changes, in the project and in the layer, open and unlocked while a batch is applied. */
import { closeSync, constants, openSync } from 'node:fs'
import { at, CHANGE, ENTER, itself, openDirectory, requireMountOf, unlock } from '../base/beneath/beneath.ts'
import { openCanonical } from '../base/beneath/open-beneath.ts'
import { errnoOf } from '../base/error.ts'
import { copyOf } from '../base/kernel/descriptor.ts'
import { nameBytes } from './entry.ts'
import { Flush } from './flush.ts'
import { NotAsShown } from './stage.ts'

/** A name, and its directory in the project and in the layer. Undefined where one has no such directory. */
export interface Place<Project = number> {
  readonly dir: Project
  readonly layer: number | undefined
  readonly name: string
}

interface Opened {
  readonly fd: number
  close(): void
}

/** In the project and in the layer: many machines allow a process 1024 descriptors. */
const MOST_OPEN = 256

/** A descriptor is valid until the next call. */
export class OpenDirectories {
  readonly #project: number
  readonly #upper: number
  readonly #opened = new Map<string, readonly [project: Opened | undefined, layer: Opened | undefined]>()

  readonly #need: number
  /** Both trees are layers. */
  readonly areLayers: boolean

  /** To write the project, its directories are unlocked. With `layers`, a second layer is in place of the project. */
  constructor(workspace: string, upper: string, use: 'read' | 'write' | 'layers') {
    this.areLayers = use === 'layers'
    this.#need = use === 'write' ? CHANGE : NONE
    this.#project = openCanonical(workspace)
    this.#upper = openCanonical(upper)
  }

  [Symbol.dispose](): void {
    this.release()
    closeSync(this.#project)
    closeSync(this.#upper)
  }

  /** Fails when the project has no such directory, or a link or another file system is on the way. */
  at(path: string): Place {
    const { dir, ...rest } = this.find(path)
    if (dir === undefined) throw new NotAsShown('its directory is not there')
    return { ...rest, dir }
  }

  find(path: string): Place<number | undefined> {
    const above = parentOf(path)
    let both = this.#opened.get(above)
    if (both === undefined) {
      if (this.#opened.size >= MOST_OPEN) this.#makeRoom()
      const first = this.areLayers
        ? openOfLayer(this.#project, above)
        : openOfProject(this.#project, above, this.#need)
      both = [first, openOfLayer(this.#upper, above)]
      this.#opened.set(above, both)
    }
    return { dir: both[0]?.fd, layer: both[1]?.fd, name: nameOf(path) }
  }

  #makeRoom(): void {
    if (this.#need !== NONE) this.flush()
    this.release()
  }

  /** Calls `act` with a directory of the project, and of the layer. */
  inside(path: string, act: (project: number, layer: number | undefined) => void): void {
    const project = descend(this.#project, path, NONE)
    const layer = openOfLayer(this.#upper, path)
    try {
      if (project !== undefined) act(project.fd, layer?.fd)
    } finally {
      layer?.close()
      project?.close()
    }
  }

  /** Calls `act` with the directory of a path in the layer, unlocked, where the layer has one. */
  inLayer(path: string, act: (layer: number, name: string) => void): void {
    const opened = descend(this.#upper, parentOf(path), ENTER | CHANGE)
    if (opened === undefined) return
    try {
      act(opened.fd, nameOf(path))
    } finally {
      opened.close()
    }
  }

  /** Brings renames to the disk. */
  flush(): void {
    const flush = new Flush()
    for (const [project] of this.#opened.values()) {
      const fd = project === undefined ? undefined : openToSync(project.fd)
      if (fd !== undefined) flush.add(fd)
    }
    flush.run()
  }

  release(): void {
    for (const both of this.#opened.values()) for (const opened of both) opened?.close()
    this.#opened.clear()
  }
}

/** A directory that the user may not read is flushed later, by the kernel. */
function openToSync(dir: number): number | undefined {
  try {
    return openSync(itself(dir), constants.O_RDONLY | constants.O_DIRECTORY)
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error
    return undefined
  }
}

/** `.` is the project itself. */
export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/'))) || '.'

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

const namesOf = (path: string): readonly string[] => (path === '.' ? [] : path.split('/'))

/**
 * One component after the other, so that no link is followed. Undefined when one of them is no directory. Those above the last one are
 * closed and locked again: it is reached without them.
 */
function descend(top: number, path: string, need: number): Opened | undefined {
  let opened = unlocked(copyOf(top), need)
  try {
    for (const name of namesOf(path)) {
      const next = openDirectory(at(opened.fd, nameBytes(name)))
      if (next === undefined) {
        opened.close()
        return undefined
      }
      const above = opened
      opened = unlocked(next, need)
      try {
        requireMountOf(above.fd, next)
      } finally {
        above.close()
      }
    }
    return opened
  } catch (error) {
    opened.close()
    throw error
  }
}

function unlocked(fd: number, need: number): Opened {
  const lock = unlock(fd, need)
  const close = (): void => {
    lock()
    closeSync(fd)
  }
  return { fd, close }
}

/** A sandbox may have locked each of its directories. */
const openOfLayer = (top: number, path: string): Opened | undefined => descend(top, path, ENTER)

/** The user's own directory may be read-only: it is writable until the batch ends. */
function openOfProject(top: number, path: string, need: number): Opened | undefined {
  const opened = descend(top, path, NONE)
  return opened === undefined ? undefined : unlocked(opened.fd, need)
}

/** What the user locked stays locked. */
const NONE = 0
