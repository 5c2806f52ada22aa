/**
 * What the denials of a policy cover at this moment, and which directories decide that. As at the start, only directories
 * that a rule's own components name are listed. The sandbox makes and renames what is found here: it is only looked at.
 */
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { dirname } from '../base/posix-path.ts'
import { locate } from '../config/locate.ts'
import { isPattern, nameMatches } from '../policy/files/glob.ts'
import { isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { isNonUtf8, matchingNames } from '../survey/expand.ts'

/** One denial as the names that lead to what it denies. */
interface Trail {
  readonly root: string
  readonly names: readonly string[]
  readonly directoryOnly: boolean
}

interface Step {
  readonly trail: Trail
  readonly level: number
}

/** Each is looked at four times a second. What goes beyond ends the run: see `overflows`. */
const MAX_PLACES = 10_000
const MAX_DIRECTORIES = 10_000
/** As many as are told of. */
const MAX_TOLD = 20

export class DeniedPlaces {
  readonly #roots: readonly string[]
  readonly #trails: readonly Trail[]
  readonly #list: typeof matchingNames
  #directories = new Map<string, Step[]>()
  #places = new Set<string>()
  #uncovered = new Map<string, string>()
  #overflows: boolean = false
  /** Where links lead that lead nowhere yet. */
  #dangling = new Set<string>()

  /** `roots` are the host's directories that the sandbox sees, each at its own path. */
  constructor(policy: Policy, roots: readonly string[], list = matchingNames) {
    this.#roots = roots
    this.#list = list
    this.#trails = policy.files.deny.flatMap(({ rule }): Trail[] =>
      rule.kind === 'glob'
        ? [{ root: policy.workspace, names: rule.glob.components, directoryOnly: rule.glob.directoryOnly }]
        : this.#trailTo(rule.path),
    )
  }

  /** Directories whose entries decide; as of the last survey. */
  get directories(): ReadonlyMap<string, unknown> {
    return this.#directories
  }

  /**
   * Denied places that cannot be covered, and why, as of the last survey: their names are no text, or pen could not look. What the mode of a
   * directory keeps from pen it also keeps from the sandbox, which is the same user: that is no news, and the next survey looks again.
   */
  get uncovered(): ReadonlyMap<string, string> {
    return this.#uncovered
  }

  /** True when there is more than can be watched. */
  get overflows(): boolean {
    return this.#overflows
  }

  /** The directories, as far as they are known without listing one: quick, however large they are. */
  begin(): void {
    for (const trail of this.#trails) this.#descend(trail, trail.root, 0, () => [])
  }

  /** Everything that exists and is denied. */
  survey(): ReadonlySet<string> {
    this.#directories = new Map()
    this.#places = new Set()
    this.#uncovered = new Map()
    this.#overflows = false
    this.#dangling = new Set()
    for (const trail of this.#trails) this.#descend(trail, trail.root, 0, this.#list)
    // Last, so that a sandbox that makes many keeps nothing else from being watched. They count, as what is there does.
    for (const path of this.#dangling)
      for (const trail of this.#trailTo(path)) {
        this.#add(path)
        this.#descend(trail, trail.root, 0, this.#list)
      }
    return this.#places
  }

  /** What a name that appeared is: a denied place, something that only a survey can tell, or nothing of interest. */
  judge(dir: string, name: string): { readonly place: string } | 'survey' | 'nothing' {
    const steps = (this.#directories.get(dir) ?? []).filter(({ trail, level }) =>
      nameMatches(trail.names[level] ?? '', name, true),
    )
    if (steps.length === 0) return 'nothing'
    const path = `${dir}/${name}`
    const plain = steps.some(
      ({ trail, level }) =>
        level === trail.names.length - 1 &&
        !trail.directoryOnly &&
        nameMatches(trail.names[level] ?? '', name),
    )
    return plain && this.#look(path)?.isFile() ? { place: path } : 'survey'
  }

  #trailTo(path: string): Trail[] {
    const root = this.#roots
      .filter(top => top !== path && isWithin(path, top))
      .sort((a, b) => b.length - a.length)[0]
    if (root === undefined) return []
    return [{ root, names: path.slice(root.length + 1).split('/'), directoryOnly: false }]
  }

  #descend(trail: Trail, dir: string, level: number, list: typeof matchingNames): void {
    const component = trail.names[level]
    if (component === undefined) return
    const steps = this.#directories.get(dir) ?? []
    this.#directories.set(dir, [...steps, { trail, level }])
    this.#overflows ||= this.#directories.size > MAX_DIRECTORIES
    if (this.#overflows) return
    const names = isPattern(component) ? this.#seen(dir, () => list(dir, component)) : [component]
    for (const name of names ?? []) {
      const path = `${dir}/${name}`
      const stats = this.#look(path)
      if (stats === undefined && this.#seen(path, () => isNonUtf8(dir, name)))
        this.#report(path, 'its name is no text')
      if (stats === undefined) continue
      if (level < trail.names.length - 1) {
        if (stats.isDirectory()) this.#descend(trail, path, level + 1, list)
      } else if (stats.isSymbolicLink()) this.#throughLink(trail, path)
      else if (stats.isDirectory() || !trail.directoryOnly) this.#add(path)
    }
  }

  /** A link cannot carry a mount, and by itself it shows nothing: what it leads to does. */
  #throughLink(trail: Trail, link: string): void {
    try {
      const { real, kind } = locate(link)
      if (kind === 'absent' || kind === 'unreachable') {
        // What will be there is denied from its first moment on, so the way to it is watched.
        if (this.#dangling.size < MAX_PLACES) this.#dangling.add(real)
        else this.#overflows = true
        return
      }
      const root = dirname(real)
      if (this.#roots.every(top => real === top || !isWithin(real, top))) return
      if (this.#roots.some(top => isWithin(top, real))) return
      const steps = this.#directories.get(root) ?? []
      const names = [real.slice(root.length + 1)]
      this.#directories.set(root, [...steps, { trail: { ...trail, root, names }, level: 0 }])
      if (!trail.directoryOnly || this.#look(real)?.isDirectory()) this.#add(real)
    } catch (error) {
      // Links that lead in a circle show nothing.
      if (!(error instanceof PenError)) throw error
    }
  }

  #add(path: string): void {
    if (this.#places.size < MAX_PLACES) this.#places.add(path)
    else this.#overflows = true
  }

  #look = (path: string) => this.#seen(path, () => lookAt(path))

  #seen<T>(path: string, look: () => T): T | undefined {
    try {
      return look()
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      if (error.errno !== 'EACCES' || isHostRoot())
        this.#report(path, `pen could not look at it: ${error.errno}`)
      return undefined
    }
  }

  #report(path: string, why: string): void {
    if (this.#uncovered.size < MAX_TOLD) this.#uncovered.set(path, why)
  }
}
