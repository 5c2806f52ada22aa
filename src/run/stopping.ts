/** Ending a sandbox: asked first, then ended, whatever it ignores. */
import type { Running } from '../backend/backend.ts'

/** From the first request until everything is killed: with bubblewrap's own end this stays within two seconds. */
export const GRACE_MS = 1200

export type StopReason = 'wall' | 'signal' | 'limit'

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

  /** A part of the supervisor that the sandbox must not run without is gone: it ends at once, and the run has failed. */
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

  /** At once: for a bound that is being overrun. */
  now(reason: StopReason): void {
    this.#reason ??= reason
    this.#running.kill()
  }

  done(): void {
    clearTimeout(this.#timer)
  }
}

/** Signals that a person or the system sends to pen and that mean the command. */
const PASSED = ['SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
const ENDING = ['SIGTERM', 'SIGHUP'] as const

/** Passes signals on for as long as the sandbox runs; returns what undoes it. */
export function passSignals(running: Running, stopping: Stopping): () => void {
  const undo: (() => void)[] = []
  const on = (signal: NodeJS.Signals, act: () => void) => {
    process.on(signal, act)
    undo.push(() => process.off(signal, act))
  }
  for (const signal of PASSED) on(signal, () => running.signal(signal))
  for (const signal of ENDING) on(signal, () => stopping.ask('signal', signal))
  return () => {
    for (const off of undo) off()
  }
}
