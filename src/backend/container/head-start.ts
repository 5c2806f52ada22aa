/**
 * The engine takes longer than all the rest, and a sandbox that stays is mostly started just as it was the last time. So the engine
 * is asked for that at once, while the policy is still read and the plan made. What comes is used only if the plan asks for the
 * very same; else it is taken away before anything but the exec daemon has run in it, and the engine is asked again.
 */
import { rmSync } from 'node:fs'
import type { Begun, Sandbox } from './begin.ts'
import { recall, remember } from './engine/found-once.ts'
import type { Shape } from './shape.ts'

const MOST_BYTES = 1024 * 1024

/** Of the user's own state, where the live config stands too: whoever may write it needs no sandbox. */
const fileOf = (stateDir: string): string => `${stateDir}/last-container.json`

/** For whoever knows that the next container will be another. */
export const forgetLast = (stateDir: string): void => rmSync(fileOf(stateDir), { force: true })

interface Kept {
  readonly shape: Shape
  readonly runtime: string | undefined
}

export class HeadStart {
  readonly sandbox: Sandbox
  /** What the start goes by: with anything else another container is to be expected. */
  readonly #key: string
  readonly #kept: Kept | undefined
  #begun: Begun | undefined
  #taken: boolean = false

  private constructor(sandbox: Sandbox, key: string) {
    this.sandbox = sandbox
    this.#key = key
    this.#kept = recall<Kept>(fileOf(sandbox.stateDir), key, MOST_BYTES)
  }

  /** Resolves when the engine has been asked, if there is anything to ask it for. */
  static async begin(sandbox: Sandbox, key: string, cacheDir: string): Promise<HeadStart> {
    const headStart = new HeadStart(sandbox, key)
    if (headStart.#kept !== undefined) headStart.#begun = await headStart.#begin(headStart.#kept, cacheDir)
    return headStart
  }

  /** Whatever stands in its way is told by the start proper. */
  async #begin({ shape, runtime }: Kept, cacheDir: string): Promise<Begun | undefined> {
    try {
      const { begin, findEngine, guestProgram } = await import('./begin.ts')
      // The user may have another storage or session by now.
      if (!isSame(findEngine(shape.engine.name), shape.engine)) return undefined
      const program = await guestProgram(cacheDir)
      const runtimes = { candidates: [runtime], worked: () => undefined }
      const begun = await begin({ shape, program, sandbox: this.sandbox, runtimes })
      // Whoever takes it hears of a failure.
      begun.coming.catch(() => undefined)
      return begun
    } catch {
      return undefined
    }
  }

  /** What is on its way, if it is what was to be asked for; by then nothing else is. */
  async take(shape: Shape, runtime: string | undefined): Promise<Begun | undefined> {
    const begun = this.#begun
    this.#taken = begun !== undefined && isSame(this.#kept, { shape, runtime })
    if (!this.#taken) await this.dismiss()
    this.#begun = undefined
    return this.#taken ? begun : undefined
  }

  wasTaken(): boolean {
    return this.#taken
  }

  /** For the next start, which can do without: where more than the engine has to be asked, nothing is begun ahead. */
  remember(shape: Shape, runtime: string | undefined): void {
    const kept: Kept = { shape, runtime }
    if (shape.shows || shape.order.verb !== 'run' || isSame(this.#kept, kept)) return
    remember(fileOf(this.sandbox.stateDir), this.#key, kept)
  }

  async dismiss(): Promise<void> {
    const begun = this.#begun
    this.#begun = undefined
    await begun?.undo.unwind()
  }
}

/** Both of plain data, made in the same order. */
const isSame = <T>(one: T | undefined, other: T): boolean => JSON.stringify(one) === JSON.stringify(other)
