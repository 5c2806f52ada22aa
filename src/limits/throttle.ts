/**
 * Pauses the processes of a sandbox by SIGSTOP: for as long as they exceeded their share of the CPUs, and while pen looks at what
 * they made. It only slows a sandbox down: a timer can wake a process, and forks can outrun the passes. Shells notice stopped
 * children, so parents are paused before their children and resumed after them.
 */
import { signal } from '../base/kernel/end-processes.ts'
import { listTrees, type Member, statFields } from '../base/kernel/processes.ts'

const PASSES = 3
const SETTLE_MS = 5
/** After this many failures, pause anyway: a parent that never stops must not keep its children running. */
const MOST_TRIES = 5

type Reason = 'cpu' | 'look'

export class Throttle {
  readonly #inits: readonly number[]
  readonly #reasons = new Set<Reason>()
  #paused: Member[] = []
  #tries = 0

  constructor(...inits: readonly number[]) {
    this.#inits = inits
  }

  get isPaused(): boolean {
    return this.#reasons.has('cpu')
  }

  /**
   * Pauses every process except the inits. A process that the user stopped stays stopped. Returns false when a parent did not stop
   * before its children: these run again, and the caller retries. `at once` pauses anyway.
   */
  pause(reason: Reason = 'cpu', how: 'in order' | 'at once' = 'in order'): boolean {
    const patient = how === 'in order' && this.#tries++ < MOST_TRIES
    const seen = new Set<number>()
    const mine: Member[] = []
    for (let pass = 0; pass < PASSES; pass++) {
      const fresh = listTrees(this.#inits).filter(({ pid, depth }) => depth > 0 && !seen.has(pid))
      // A child that was forked while its parent was being paused appears in the next pass.
      if (fresh.length === 0) break
      for (let depth = 1, level = fresh; level.length > 0; depth++) {
        const now = level.filter(member => member.depth <= depth)
        level = level.filter(member => member.depth > depth)
        const stopped = now.filter(member => {
          seen.add(member.pid)
          const state = statFields(member.pid)?.[0]
          return state !== undefined && !'TtZX'.includes(state) && signal(member.pid, 'SIGSTOP')
        })
        mine.push(...stopped)
        if (level.length === 0 || settle(stopped) || !patient) continue
        wake(mine)
        return false
      }
    }
    this.#tries = 0
    this.#paused.push(...mine)
    this.#reasons.add(reason)
    return true
  }

  /** The processes go on when there is no other reason. */
  resume(reason: Reason = 'cpu'): void {
    this.#reasons.delete(reason)
    if (this.#reasons.size === 0) wake(this.#paused.splice(0))
  }
}

function wake(paused: Member[]): void {
  for (const { pid } of paused.sort((a, b) => b.depth - a.depth)) signal(pid, 'SIGCONT')
}

/** Waits until the parents have stopped. A parent that still runs could see its child stop. */
function settle(stopped: readonly Member[]): boolean {
  const deadline = performance.now() + SETTLE_MS
  const stands = (pid: number): boolean => {
    const state = statFields(pid)?.[0]
    return state === undefined || 'TtZXD'.includes(state)
  }
  for (const { pid } of stopped) while (!stands(pid)) if (performance.now() > deadline) return false
  return true
}
