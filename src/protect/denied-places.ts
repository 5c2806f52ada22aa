/**
 * What the deny rules of a policy cover at this moment, and which directories decide that. As at the start, only directories
 * that a rule names are listed; for `**` + `/` globs see tree-watch.ts. The sandbox may create and rename these files at any
 * time, so this code only looks.
 */
import type { BigIntStats } from 'node:fs'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { dirname } from '../base/posix-path.ts'
import { locate } from '../config/locate.ts'
import { isPattern, nameMatches } from '../policy/files/glob.ts'
import { isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { AnyDepth } from '../survey/any-depth.ts'
import { isNonUtf8, matchingNames } from '../survey/expand.ts'
import { TOO_MANY, TreeWatch } from './tree-watch.ts'

/** One deny rule, as the components of its path. */
interface Trail {
  readonly root: string
  readonly names: readonly string[]
  readonly directoryOnly: boolean
}

interface Step {
  readonly trail: Trail
  readonly level: number
}

/** Each is checked four times a second. More than this ends the run: see `overflows`. */
const MAX_PLACES = 10_000
const MAX_DIRECTORIES = 10_000
/** How many are named in messages. */
const MAX_TOLD = 20

/** A denied place, one that needs a survey, or irrelevant. */
export type Judged = { readonly place: string } | 'survey' | 'nothing'

export class DeniedPlaces {
  readonly #roots: readonly string[]
  readonly #trails: readonly Trail[]
  readonly #list: typeof matchingNames
  #directories = new Map<string, Step[]>()
  #places = new Set<string>()
  #uncovered = new Map<string, string>()
  #overflows: boolean = false
  readonly #anyDepth: AnyDepth | undefined
  #tree: TreeWatch | undefined
  /** Targets of links that do not exist yet. */
  #dangling = new Set<string>()

  /**
   * `roots` are the host's directories that the sandbox sees, each at its own path. `git` is the host's git directory, in
   * place of which the sandbox has its own.
   */
  constructor(policy: Policy, roots: readonly string[], list = matchingNames, git?: string) {
    this.#roots = roots
    this.#list = list
    this.#anyDepth = AnyDepth.of(policy, git)
    this.#trails = policy.files.deny.flatMap(({ rule }): Trail[] => {
      if (rule.kind === 'path') return this.#trailTo(rule.path)
      const { anyDepth, components: names, directoryOnly } = rule.glob
      return anyDepth ? [] : [{ root: policy.workspace, names, directoryOnly }]
    })
  }

  /** Directories whose entries decide; as of the last survey. */
  get directories(): ReadonlyMap<string, unknown> {
    return this.#directories
  }

  /**
   * Denied places that cannot be covered, and why, as of the last survey: their names are non-UTF-8, or pen could not look.
   * A directory that is locked for pen is locked for the sandbox too, which is the same user: the next survey looks again.
   */
  get uncovered(): ReadonlyMap<string, string> {
    return new Map([...this.#uncovered, ...(this.#tree?.uncovered ?? [])])
  }

  /** Why the rules can no longer be enforced: there is more than can be watched. */
  get overflows(): string | undefined {
    return this.#overflows ? TOO_MANY : undefined
  }

  /** Changes when a survey is due because of a `**` + `/` glob. */
  get version(): number {
    return this.#tree?.version ?? 0
  }

  /** The directories, as far as they are known without listing one: quick, however large they are. */
  begin(): void {
    for (const trail of this.#trails) this.#descend(trail, trail.root, 0, () => [])
  }

  /** Watches the whole tree for `**` + `/` globs. `found` gets what `judge` would answer. */
  watchTree(found: (judged: Judged) => void, overflowed: (why: string) => void): void {
    if (this.#anyDepth === undefined) return
    this.#tree = new TreeWatch(this.#anyDepth, {
      found: path => found(this.#judgeFound(path)),
      overflowed,
    })
    this.#tree.start()
  }

  async close(): Promise<void> {
    await this.#tree?.close()
  }

  /** Everything that exists and is denied. */
  survey(): ReadonlySet<string> {
    this.#directories = new Map()
    this.#places = new Set()
    this.#uncovered = new Map()
    this.#overflows = false
    this.#dangling = new Set()
    for (const trail of this.#trails) this.#descend(trail, trail.root, 0, this.#list)
    for (const [path, directoryOnly] of this.#tree?.found ?? []) this.#surveyFound(path, directoryOnly)
    // Last, so that a sandbox that makes many cannot push out other places. They count towards the limit.
    for (const path of this.#dangling)
      for (const trail of this.#trailTo(path)) {
        this.#add(path)
        this.#descend(trail, trail.root, 0, this.#list)
      }
    return this.#places
  }

  /** Classifies a new name: a denied place, one that needs a survey, or irrelevant. */
  judge(dir: string, name: string): Judged {
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

  #judgeFound(path: string): Judged {
    const stats = this.#look(path)
    if (stats === undefined) return 'nothing'
    return stats.isFile() && this.#tree?.found.get(path) === false ? { place: path } : 'survey'
  }

  #surveyFound(path: string, directoryOnly: boolean): void {
    const stats = this.#look(path)
    if (stats !== undefined) this.#take({ ...split(path), directoryOnly }, path, stats)
    else if (!this.#uncovered.has(path)) this.#tree?.forget(path)
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
      } else this.#take(trail, path, stats)
    }
  }

  /** A denied path that exists. */
  #take(trail: Trail, path: string, stats: BigIntStats): void {
    if (stats.isSymbolicLink()) this.#throughLink(trail, path)
    else if (stats.isDirectory() || !trail.directoryOnly) this.#add(path)
  }

  /** Nothing can be mounted on a link, and a link alone reveals nothing. Its target is covered. */
  #throughLink(trail: Trail, link: string): void {
    try {
      const { real, kind } = locate(link)
      if (kind === 'absent' || kind === 'unreachable') {
        // The target is denied as soon as it exists, so the path to it is watched.
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
      // A loop of links reveals nothing.
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

const split = (path: string): Pick<Trail, 'root' | 'names'> => {
  const root = dirname(path)
  return { root, names: [path.slice(root.length + 1)] }
}
