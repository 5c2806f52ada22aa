/**
 * Head start: the engine takes longer than everything else, and most starts repeat the last one. So pen requests the
 * container of the last start at once, while it still loads the policy and builds the plan. The container is used only
 * if the plan needs exactly the same. Otherwise it is removed, when only the exec daemon has run in it, and pen
 * requests another.
 */
import { rmSync } from 'node:fs'
import { recall, remember } from '../../base/fact-cache.ts'
import { findEngine } from './engine/engine.ts'
import { guestProgram } from './guest-program.ts'
import { type RequestedContainer, requestContainer, type Sandbox } from './request-container.ts'
import type { Shape } from './shape.ts'

const MAX_BYTES = 1024 * 1024

/** In the user's own state, beside the live config. A process that can write it needs no sandbox. */
const fileOf = (stateDir: string): string => `${stateDir}/last-container.json`

/** Call it when the next container will differ. */
export const forgetLast = (stateDir: string): void => rmSync(fileOf(stateDir), { force: true })

interface LastContainer {
  readonly shape: Shape
  readonly runtime: string | undefined
}

export class HeadStart {
  readonly sandbox: Sandbox
  /** The inputs of the start. When they change, another container is likely. */
  readonly #key: string
  readonly #last: LastContainer | undefined
  #requested: RequestedContainer | undefined
  #taken: boolean = false

  private constructor(sandbox: Sandbox, key: string) {
    this.sandbox = sandbox
    this.#key = key
    this.#last = recall<LastContainer>(fileOf(sandbox.stateDir), key, MAX_BYTES)
  }

  /** Resolves when the container has been requested, if there was a last one. */
  static async begin(sandbox: Sandbox, key: string, cacheDir: string): Promise<HeadStart> {
    const headStart = new HeadStart(sandbox, key)
    if (headStart.#last !== undefined)
      headStart.#requested = await headStart.#begin(headStart.#last, cacheDir)
    return headStart
  }

  /** Errors are ignored here. The regular start reports them. */
  async #begin({ shape, runtime }: LastContainer, cacheDir: string): Promise<RequestedContainer | undefined> {
    try {
      // The user may have another storage or session by now.
      if (!isSame(findEngine(shape.engine.name), shape.engine)) return undefined
      const program = await guestProgram(cacheDir)
      const runtimes = { candidates: [runtime], worked: () => undefined }
      const requested = await requestContainer({ shape, program, sandbox: this.sandbox, runtimes, cacheDir })
      // The caller that takes it handles the error.
      requested.pending.catch(() => undefined)
      return requested
    } catch {
      return undefined
    }
  }

  /** Returns the requested container if it has this shape. Otherwise it is removed before this resolves. */
  async take(shape: Shape, runtime: string | undefined): Promise<RequestedContainer | undefined> {
    const requested = this.#requested
    this.#taken = requested !== undefined && isSame(this.#last, { shape, runtime })
    if (!this.#taken) await this.dismiss()
    this.#requested = undefined
    return this.#taken ? requested : undefined
  }

  wasTaken(): boolean {
    return this.#taken
  }

  /** Stores the shape for the next start. Shapes that need more than one request get no head start. */
  remember(shape: Shape, runtime: string | undefined): void {
    const last: LastContainer = { shape, runtime }
    if (shape.shows || shape.order.verb !== 'run' || isSame(this.#last, last)) return
    remember(fileOf(this.sandbox.stateDir), this.#key, last)
  }

  async dismiss(): Promise<void> {
    const requested = this.#requested
    this.#requested = undefined
    await requested?.undo.unwind()
  }
}

/** Both are plain data whose keys have the same order. */
const isSame = <T>(one: T | undefined, other: T): boolean => JSON.stringify(one) === JSON.stringify(other)
