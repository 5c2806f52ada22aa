/**
 * Ends a sandbox when the host's index gets a new gitlink, as by `git submodule add` or `git switch` on the host. It also
 * ends one when a program of the host replaces a `.git` that a mount hides. Such a place cannot be held in a sandbox that
 * runs: a process may have the directory open, and a mount does not change that. The next start holds it.
 */
import { throughLocked } from '../../base/beneath/beneath.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { MountedPlaces } from '../../survey/mounted-places.ts'
import { type Entering, gitlinkPlaces, setAsidePlanted } from './gitlink-places.ts'

const LOOK_MS = 250
/** Shorter runs need no watch. */
const START_AFTER_MS = 20
/** git replaces an index by a rename. One that stays unreadable may list anything. */
const MAX_UNREAD = 4

export interface GitlinkOptions extends Entering {
  readonly stateDir: string
  readonly mounted: MountedPlaces
  /** A line for the user. The sandbox must end. */
  readonly onEnd: (line: string) => void
}

export class GitlinkWatch {
  readonly #options: GitlinkOptions
  readonly #project: MountedPlaces
  /** Times of these change with each new place. */
  #files: readonly string[] = []
  #known: ReadonlySet<string> | undefined
  #added: readonly string[] = []
  #states: string | undefined
  #replaced: readonly string[] = []
  /** Looks without an answer, in a row. */
  #unread = 0
  #timer: ReturnType<typeof setTimeout>

  constructor(options: GitlinkOptions) {
    this.#options = options
    this.#project = new MountedPlaces(options.workspace, [options.workspace])
    this.#timer = this.#later(START_AFTER_MS)
  }

  /** After the last process of the sandbox. Returns lines for the user. */
  finish(): readonly string[] {
    clearTimeout(this.#timer)
    // What is there now, such as a new clone, was never in the sandbox.
    if (this.#isProjectGone) return []
    this.#lookAtMounts()
    if (this.#known !== undefined) this.#tryLook()
    const { own } = this.#options
    const planted = [...this.#added, ...this.#replaced].map(place =>
      place === own?.git.path || place.endsWith('/.git') ? place : `${place}/.git`,
    )
    return setAsidePlanted(this.#options, planted)
  }

  #later(ms: number): ReturnType<typeof setTimeout> {
    const timer = setTimeout(() => {
      this.#lookAtMounts()
      this.#tryLook()
      if (this.#added.length + this.#replaced.length === 0) this.#timer = this.#later(LOOK_MS)
    }, ms)
    timer.unref()
    return timer
  }

  /** Then `PlaceWatch` ends the sandbox. */
  get #isProjectGone(): boolean {
    return this.#project.replaced().length > 0
  }

  #lookAtMounts(): void {
    if (this.#replaced.length > 0 || this.#isProjectGone) return
    this.#replaced = this.#options.mounted.replaced()
    const [first] = this.#replaced
    if (first !== undefined)
      this.#options.onEnd(
        `git: ${printable(first, 500)} was replaced or removed on the host, and a sandbox that runs could write the new one: the sandbox was ended; fix: start it again`,
      )
  }

  #tryLook(): void {
    try {
      // A sandbox may have locked the project.
      const { workspace } = this.#options
      this.#unread =
        this.#answers() || throughLocked(`${workspace}/.git`, () => this.#look()) ? 0 : this.#unread + 1
    } catch (error) {
      // The user's git directory cannot be read for a moment. The next look, or the next start, finds it.
      if (!(error instanceof PenError)) throw error
      this.#unread++
    }
    if (this.#unread === MAX_UNREAD)
      this.#options.onEnd(
        'git: pen cannot read which submodules the repository on the host has, and a sandbox that runs could replace a new one: the sandbox was ended; fix: look at each that "git ls-files --stage" lists with 160000; git status would enter them',
      )
  }

  #answers(): boolean {
    try {
      return this.#look()
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      this.#states = undefined
      return false
    }
  }

  /** False when there was no answer. */
  #look(): boolean {
    const { stateDir, onEnd } = this.#options
    const states = this.#files.map(state).join(' ')
    if (states === this.#states || this.#added.length > 0) return true
    this.#states = states
    const found = gitlinkPlaces(this.#options, `${stateDir}/gitlinks.json`)
    if (found === undefined) {
      this.#states = undefined
      return false
    }
    const { places, files } = found
    this.#files = files
    if (this.#known === undefined) this.#known = places
    else {
      this.#added = [...places].filter(place => !this.#known?.has(place))
      const [first] = this.#added
      if (first === undefined) this.#known = new Set([...this.#known, ...places])
      else
        onEnd(
          `git: ${printable(first, 500)} is a new submodule or worktree on the host, which a sandbox that runs could replace: the sandbox was ended; fix: start it again`,
        )
    }
    return true
  }
}

const state = (file: string): string => {
  const stats = lookAt(file)
  return stats === undefined ? '-' : `${stats.ino}.${stats.ctimeNs}`
}
