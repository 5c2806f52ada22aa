/**
 * Project files to which the user's home links, as in a dotfiles project where `~/.bashrc` is a link to `bashrc`. A sandbox that
 * writes such a file runs code on the host at the next login. So pen checks the known places of the home and protects their
 * targets. The number of lookups is bounded: neither the home nor the project is searched.
 * The home is trusted. A link in the project may be a sandbox's work: it is never written, and is protected too.
 */
import { readdirSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import type { HomePlace, HomeTree } from '../../policy/files/home-places.ts'
import type { LinkedPlace } from '../../policy/files/linked-place.ts'
import { isWithin, type PathWorld } from '../../policy/files/path.ts'
import { type Environment, type HomeLocation, homeLocations } from './home-locations.ts'
import { LinkTrails, lookAt, type Trail } from './link-trail.ts'

interface HomeLinks {
  readonly linked: readonly LinkedPlace[]
  /** What could not be checked, as text for the user. */
  readonly homeWarnings: readonly string[]
}

/** In bytes; on ext4 about 4,000 names. */
const MAX_DIRECTORY = 262_144
/** On ext4 about 500 names. Listing more takes longer than looking up the known names. */
const SMALL_DIRECTORY = 16_384
const FEW = 12
/** Settings directories are small. */
const MAX_DEEPER = 500

/** `writable` lists the other directories that the sandbox may write. */
export function findHomeLinks(
  world: Pick<PathWorld, 'workspace' | 'home'>,
  writable: readonly string[],
  env: Environment,
): HomeLinks {
  const search = new Search(world, writable)
  for (const spot of homeLocations(world, env)) search.look(spot)
  search.lookDeeper()
  return search
}

class Search implements HomeLinks {
  readonly homeWarnings: string[] = []
  readonly #workspace: string
  readonly #roots: readonly string[]
  readonly #trails: LinkTrails
  readonly #found = new Map<string, Set<string>>()
  readonly #deep: { readonly dir: string; readonly name: string }[] = []

  constructor({ workspace, home }: Pick<PathWorld, 'workspace' | 'home'>, writable: readonly string[]) {
    this.#workspace = workspace
    this.#roots = [workspace, ...writable.filter(dir => !isWithin(dir, workspace))]
    this.#trails = new LinkTrails(path => this.#isInside(path))
    this.#trails.isReal(home)
  }

  get linked(): readonly LinkedPlace[] {
    return [...this.#found].map(([name, paths]) => ({ name, paths: [...paths] }))
  }

  look({ path, name, place }: HomeLocation): void {
    const trail = this.#trails.follow(path)
    const ways = this.#isInside(trail.end) ? [...trail.through, trail.end] : trail.through
    for (const way of ways) this.#addAll(name, way, place)
    if (trail.end === '') return
    if (isWithin(this.#workspace, trail.end)) this.#around(trail.end, name, place)
    if (trail.stats?.isDirectory() === true) this.#directory(trail, name, place)
    else if (ways.length === 0 && (trail.stats?.nlink ?? 0) > 1) this.#doubt(name, path, trail)
  }

  /** Adds absent places too, because a sandbox could create them. */
  #addAll(name: string, path: string, place: HomePlace): void {
    if (place.run === true) this.#found.set(name, (this.#found.get(name) ?? new Set()).add(path))
    else
      for (const child in place.in)
        this.#addAll(`${name}/${child}`, `${path}/${child}`, place.in[child] ?? {})
  }

  /** Handles a project inside a place (`~/.config/nvim/lua`), and a project that contains places (`~/.config`). */
  #around(dir: string, name: string, place: HomePlace): void {
    const names = dir === this.#workspace ? [] : this.#workspace.slice(dir.length + 1).split('/')
    let at: HomePlace | undefined = place
    let called = name
    for (const child of names) {
      if (at?.run === true && at.shallow !== true) break
      at = at?.in?.[child]
      called = `${called}/${child}`
    }
    if (at !== undefined) this.#addAll(called, this.#workspace, at)
  }

  #directory({ end, stats }: Trail, name: string, place: HomePlace): void {
    const { list, deep, in: places = {} } = place
    // The whole directory is protected, but links in it may lead to other project files.
    const isHeld = place.run === true && this.#isInside(end)
    if (deep === true && !isHeld) this.#deep.push({ dir: end, name })
    if (list !== true && place.in === undefined) return
    const look = (child: string, of: HomePlace): void =>
      this.look({ path: `${end}/${child}`, name: `${name}/${child}`, place: of })
    if (!isHeld) for (const child of this.#names(end, places)) look(child, places[child] ?? {})
    if (list === true && stats !== undefined)
      for (const entry of this.#entries(end, stats.size))
        if (places[entry] === undefined && isLink(`${end}/${entry}`)) look(entry, ENTRY)
  }

  /** The places that exist. One listing answers for all, unless the directory is large. */
  #names(dir: string, places: HomeTree): readonly string[] {
    const names = Object.keys(places)
    if (names.length < FEW) return names
    const { stats } = this.#trails.follow(dir)
    if (stats === undefined || stats.size > SMALL_DIRECTORY) return names
    return namesOf(dir).filter(name => Object.hasOwn(places, name))
  }

  /** Also searches nested settings directories, for a home in which every file is a separate link. */
  lookDeeper(): void {
    if (this.#found.size === 0) return
    let count = 0
    for (const { dir, name } of this.#deep)
      for (const entry of namesOf(dir)) {
        const below = { dir: `${dir}/${entry}`, name: `${name}/${entry}` }
        const stats = lookAt(below.dir)
        if (stats?.isSymbolicLink() === true) this.look({ path: below.dir, name: below.name, place: ENTRY })
        else if (stats?.isDirectory() !== true || entry === '.git') continue
        else if (++count < MAX_DEEPER) this.#deep.push(below)
        else if (count === MAX_DEEPER)
          this.homeWarnings.push(
            `${name} has too many directories to check: links into the project may be missed; list such files under files.protect`,
          )
      }
  }

  #entries(dir: string, size: number): readonly string[] {
    if (size <= MAX_DIRECTORY || this.#isInside(dir)) return namesOf(dir)
    throw new PenError('PATH_REFUSED', {
      what: 'this directory has too many entries to check for links into the project',
      at: dir,
      hint: 'remove what does not belong there',
    })
  }

  #isInside(path: string): boolean {
    return this.#roots.some(root => path !== root && isWithin(path, root))
  }

  /** The other hard link may be anywhere. Finding it would need a walk of the project. */
  #doubt(name: string, path: string, { stats }: Trail): void {
    if (this.#trails.follow(this.#workspace).stats?.dev === stats?.dev)
      this.homeWarnings.push(
        `${name} has another hard link: if that is in the project, the sandbox can change it; replace it with a copy: cp -p ${path} ${path}.new && mv ${path}.new ${path}`,
      )
  }
}

const ENTRY: HomePlace = { run: true }

const isLink = (path: string): boolean => lookAt(path)?.isSymbolicLink() === true

function namesOf(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return []
  }
}
