/** Ends a sandbox: SIGTERM first, SIGKILL after a grace period. */
import type { Running } from '../../backend/backend.ts'
import { forwardSignals } from '../../terminal/signals.ts'

/** From SIGTERM to SIGKILL. With bubblewrap's own end a stop stays within two seconds. */
export const GRACE_MS = 1200

type StopReason = 'wall' | 'signal'

export class Stopping {
  readonly #running: Running
  readonly #graceMs: number
  #reason: StopReason | undefined
  #failure: Error | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(running: Running, graceMs: number = GRACE_MS) {
    this.#running = running
    this.#graceMs = graceMs
  }

  /** A part that the sandbox must not run without has failed: kill the sandbox, and fail the run. */
  failed(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
    this.#running.kill()
  }

  get failure(): Error | undefined {
    return this.#failure
  }

  get reason(): StopReason | undefined {
    return this.#reason
  }

  /** SIGTERM to the command, and after the grace SIGKILL to all. */
  ask(reason: StopReason, signal: NodeJS.Signals = 'SIGTERM'): void {
    this.#reason ??= reason
    this.#running.signal(signal)
    this.#timer ??= setTimeout(() => this.#running.kill(), this.#graceMs)
  }

  done(): void {
    clearTimeout(this.#timer)
  }
}

const ENDING: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']
/** Signals to pen that are meant for the command. */
const PASSED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']

/** Passes signals on while the sandbox runs. Returns a function that stops it. */
export const passSignals = (running: Running, stopping: Stopping): (() => void) =>
  forwardSignals(
    signal => (ENDING.includes(signal) ? stopping.ask('signal', signal) : running.signal(signal)),
    [...ENDING, ...PASSED],
  )
