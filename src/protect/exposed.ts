/**
 * Whether a sandbox sees the host's file at a denied place, or no mount at a protected one. Each check looks at the sandbox's own
 * view: device and inode are not enough, because file systems reuse inodes at once.
 */
import type { HoldRequest, HoldResult, LiveMounts, Seen } from '../backend/backend.ts'
import { throughLocked } from '../base/beneath/beneath.ts'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { dirname } from '../base/posix-path.ts'
import { isWithin } from '../policy/files/path.ts'

export const MAX_TRIES = 5

export class Exposed {
  readonly #mounts: LiveMounts
  /** The project, when the sandbox sees it through a review layer. */
  readonly #layered: string | undefined
  /** Failed mounts in a row at each place. */
  readonly #failures = new Map<string, number>()

  constructor(mounts: LiveMounts, layered?: string) {
    this.#mounts = mounts
    this.#layered = layered
  }

  /** How often in a row the place could not be mounted. From `MAX_TRIES` on, `look` does not return it. */
  count(path: string, result: HoldResult): number {
    const failures = result === 'held' ? 0 : (this.#failures.get(path) ?? 0) + 1
    this.#failures.set(path, failures)
    return failures
  }

  /** What is to be mounted. */
  look(how: HoldRequest['how'], path: string): HoldRequest | 'unseen' | 'not yet' | undefined {
    const look = () => this.#lookAt(how, path)
    for (const attempt of [look, () => throughLocked(path, look)])
      try {
        return attempt()
      } catch (error) {
        if (!(error instanceof Unseen)) throw error
      }
    return this.#isHidden(path) ? undefined : 'unseen'
  }

  /** Whether a covered directory above is what the sandbox sees. */
  #isHidden(path: string): boolean {
    const up = dirname(path)
    if (up === path) return false
    try {
      const [host, inside] = [lookAt(up), this.#mounts.look(up)]
      return inside === undefined || inside.dev !== host?.dev || inside.ino !== host.ino
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      return this.#isHidden(up)
    }
  }

  #lookAt(how: HoldRequest['how'], path: string): HoldRequest | 'not yet' | undefined {
    const host = lookAt(path)
    if (host === undefined || host.isSymbolicLink()) return undefined
    const inside = this.#mounts.look(path)
    if (this.#layered !== undefined && isWithin(path, this.#layered)) return this.#inLayer(how, path, inside)
    if (inside === undefined || inside.dev !== host.dev || inside.ino !== host.ino) return undefined
    const isHeld = how === 'protect' && inside.mountPoint
    const isHopeless = (this.#failures.get(path) ?? 0) >= MAX_TRIES
    return isHeld || isHopeless ? undefined : { how, path, dev: host.dev, ino: host.ino }
  }

  /**
   * Device and inode of a merged file are not the host's. What the host made a moment ago may be invisible inside until the kernel forgets
   * that the name was absent.
   */
  #inLayer(
    how: HoldRequest['how'],
    path: string,
    inside: Seen | undefined,
  ): HoldRequest | 'not yet' | undefined {
    if (inside === undefined) return 'not yet'
    const isHopeless = (this.#failures.get(path) ?? 0) >= MAX_TRIES
    return inside.mountPoint || isHopeless ? undefined : { how, path, dev: 'any', ino: 'any' }
  }
}
