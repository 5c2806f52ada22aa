/**
 * What the deny rules of a policy cover at this moment, and which directories decide that. As at the start, only directories
 * that a rule names are listed; for `**` + `/` globs see tree-watch.ts. The sandbox may create and rename these files at any
 * time, so this code only looks.
 */
import type { BigIntStats } from 'node:fs'
import { throughLocked } from '../base/beneath/beneath.ts'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { dirname } from '../base/posix-path.ts'
import { isPattern, nameMatches } from '../policy/files/glob.ts'
import { isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { AnyDepth } from '../survey/any-depth.ts'
import { isNonUtf8, matchingNames } from '../survey/expand.ts'
import { linkText } from '../survey/links.ts'
import { DeniedLinks } from './denied-links.ts'
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
  #overflows: string | undefined
  #unknown = 0
  readonly #anyDepth: AnyDepth | undefined
  #tree: TreeWatch | undefined
  /** Targets of links that do not exist yet, or that a link led to before. */
  #dangling = new Set<string>()
  readonly #links = new DeniedLinks()

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

  /** Directories that the sandbox sees and in which a rule denies something. */
  get roots(): readonly string[] {
    return this.#trails.map(({ root }) => root)
  }

  /** Directories whose entries decide; as of the last survey. */
  get directories(): ReadonlyMap<string, unknown> {
    return this.#directories
  }

  /**
   * Denied places that cannot be covered, and why, as of the last survey: their names are non-UTF-8, or pen could not look.
   */
  get uncovered(): ReadonlyMap<string, string> {
    return new Map([...this.#uncovered, ...(this.#tree?.uncovered ?? [])])
  }

  /** How many places pen could not look at in the last survey, or lost sight of. */
  get unknown(): number {
    return this.#unknown
  }

  /** Why the rules can no longer be enforced: there is more than can be watched. */
  get overflows(): string | undefined {
    return this.#overflows
  }

  /** Changes when a survey is due because of a `**` + `/` glob. */
  get version(): number {
    return this.#tree?.version ?? 0
  }

  /** The directories, as far as they are known without listing one: quick, however large they are. */
  begin(): void {
    for (const trail of this.#trails) this.#descend(trail, trail.root, 0, () => [])
  }

  /**
   * Prepares to watch the whole tree for `**` + `/` globs. `found` gets what `judge` would answer. Throws when the tree
   * cannot be watched.
   */
  openTree(found: (judged: Judged) => void, overflowed: (why: string) => void): void {
    if (this.#anyDepth === undefined) return
    this.#tree = new TreeWatch(this.#anyDepth, {
      found: path => found(this.#judgeFound(path)),
      overflowed,
    })
  }

  watchTree(): void {
    this.#tree?.start()
  }

  async close(): Promise<void> {
    await this.#tree?.close()
  }

  /** Everything that exists and is denied. */
  survey(): ReadonlySet<string> {
    this.#directories = new Map()
    this.#places = new Set()
    this.#uncovered = new Map()
    this.#overflows = undefined
    this.#unknown = 0
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

  /** Whether a rule denies this name in a directory that it names without a pattern. The top of the workspace is not meant. */
  isInNamed(dir: string, name: string): boolean {
    return (this.#directories.get(dir) ?? []).some(
      ({ trail: { names }, level }) =>
        level > 0 &&
        level === names.length - 1 &&
        !names.slice(0, level).some(isPattern) &&
        nameMatches(names[level] ?? '', name, true),
    )
  }

  #judgeFound(path: string): Judged {
    return this.#tree?.found.get(path) === false && this.#look(path)?.isFile() ? { place: path } : 'survey'
  }

  /** A name that is not there may have moved with its directory: until that is searched, it is not forgotten. */
  #surveyFound(path: string, directoryOnly: boolean): void {
    const before = this.#unknown
    const stats = this.#look(path)
    if (stats !== undefined) this.#take({ ...split(path), directoryOnly }, path, stats)
    else if (this.#tree?.isSettled === false) this.#unknown++
    else if (this.#unknown === before) this.#tree?.forget(path)
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
    this.#decide(trail, dir, level)
    if (this.#directories.size > MAX_DIRECTORIES) this.#overflows ??= TOO_MANY
    if (this.#overflows !== undefined) return
    // By a path below it: the directory itself may be locked against a listing (`chmod 333`), and open to the sandbox.
    const listed = `${dir}/${component}`
    const names = isPattern(component) ? this.#seen(listed, () => list(dir, component)) : [component]
    for (const name of names ?? []) {
      const path = `${dir}/${name}`
      const stats = this.#look(path)
      if (stats === undefined && this.#seen(path, () => isNonUtf8(dir, name)))
        this.#report(path, 'its name is no text')
      if (stats === undefined) continue
      if (level === trail.names.length - 1) this.#take(trail, path, stats)
      else if (stats.isDirectory()) this.#descend(trail, path, level + 1, list)
      else if (stats.isSymbolicLink() && !trail.names.some(isPattern))
        // A link from before the start. Others are moved away: see survey/denied-ways.ts.
        this.#throughLink(trail, [path, ...trail.names.slice(level + 1)].join('/'))
    }
  }

  /** A denied path that exists. */
  #take(trail: Trail, path: string, stats: BigIntStats): void {
    if (stats.isSymbolicLink()) this.#throughLink(trail, path)
    else if (stats.isDirectory() || !trail.directoryOnly) this.#add(path)
  }

  #throughLink(trail: Trail, link: string): void {
    const { links, real, isThere, earlier, overflows } = this.#links.follow(link, this.#textOf)
    this.#overflows ??= overflows
    for (const path of links)
      if (this.#roots.some(top => isWithin(path, top))) this.#decide({ ...split(path), directoryOnly: false })
    for (const before of earlier)
      if (this.#roots.every(top => !isWithin(top, before))) this.#dangling.add(before)
    if (real === undefined) return
    if (!isThere) {
      // The target is denied as soon as it exists, so the path to it is watched.
      if (this.#dangling.size < MAX_PLACES) this.#dangling.add(real)
      else this.#overflows ??= TOO_MANY
      return
    }
    if (this.#roots.every(top => real === top || !isWithin(real, top))) return
    if (this.#roots.some(top => isWithin(top, real))) return
    this.#decide({ ...split(real), directoryOnly: trail.directoryOnly })
    if (!trail.directoryOnly || this.#look(real)?.isDirectory()) this.#add(real)
  }

  /** A name in this directory decides. */
  #decide(trail: Trail, dir = trail.root, level = 0): void {
    this.#directories.set(dir, [...(this.#directories.get(dir) ?? []), { trail, level }])
  }

  #add(path: string): void {
    if (this.#places.size < MAX_PLACES) this.#places.add(path)
    else this.#overflows ??= TOO_MANY
  }

  #look = (path: string) => this.#seen(path, () => lookAt(path))

  /** Undefined when it is no link. */
  #textOf = (path: string) =>
    this.#seen(path, () => (lookAt(path)?.isSymbolicLink() ? linkText(path) : undefined))

  /** A sandbox may lock the directories on the way. */
  #seen<T>(path: string, look: () => T): T | undefined {
    try {
      return look()
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
    }
    try {
      return throughLocked(path, look)
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      this.#unknown++
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
