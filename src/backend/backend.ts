/**
 * What every backend is: a way to find out what this machine can do, and an interpreter of plans. Nothing outside this
 * directory branches on a backend's name; it asks for capabilities.
 */
import type { Capabilities } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import type { BackendName } from '../policy/settings.ts'

/** How a sandbox ended. */
export type Ending =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: number }

/** A running plan. */
export interface Running {
  /** Resolves when every process of the sandbox is gone. */
  readonly ended: Promise<Ending>
  /** Every process at once, by SIGKILL: nothing inside can catch or outlive it. */
  kill(): void
  /** Passes a signal on to the command, as a terminal would. */
  signal(signal: NodeJS.Signals): void
}

export interface Backend {
  readonly name: BackendName
  /** Found by trying, not by looking for a file; cached by the caller. */
  probe(): Promise<Capabilities>
  start(plan: Plan, stdio: Stdio): Promise<Running>
}

/** The three descriptors that cross the boundary, by number on the host's side. */
export interface Stdio {
  readonly stdin: number
  readonly stdout: number
  readonly stderr: number
}
