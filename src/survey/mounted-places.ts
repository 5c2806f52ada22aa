/**
 * Places of the host that a sandbox has as mounts: the project itself, and git directories that mounts hide. When a program of
 * the host moves or removes one, the mount goes with it, and something else is at that path. So each look compares identities.
 */
import { closeSync } from 'node:fs'
import { openDirectory, withSpot } from '../base/beneath/beneath.ts'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'

export class MountedPlaces {
  readonly #workspace: string
  readonly #first: ReadonlyMap<string, string | undefined>

  /** Call it before the command begins. */
  constructor(workspace: string, places: readonly string[]) {
    this.#workspace = workspace
    this.#first = new Map(places.map(place => [place, this.#identity(place)]))
  }

  /** Those that are not what they were. */
  replaced(): readonly string[] {
    return [...this.#first].flatMap(([place, first]) => (this.#identity(place) === first ? [] : [place]))
  }

  /** With the creation time, because inodes are reused at once. A directory on the way may be locked by the sandbox. */
  #identity(place: string): string | undefined {
    const below = place.startsWith(`${this.#workspace}/`)
      ? place.slice(this.#workspace.length + 1)
      : undefined
    const top = below === undefined ? undefined : openDirectory(this.#workspace)
    try {
      const stats =
        top === undefined || below === undefined
          ? lookAt(place)
          : withSpot(top, below.split('/'), spot => spot.stats)
      return stats === undefined ? undefined : `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      return 'unseen'
    } finally {
      if (top !== undefined) closeSync(top)
    }
  }
}
