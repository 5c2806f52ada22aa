/**
 * Slows a sandbox down without a cgroup: its processes are paused for as long as they ran too much. Shells watch their
 * children for being stopped, so parents are paused before their children and woken after them: nobody sees anybody stop.
 */
import { listTree, type Member, statFields } from '../base/kernel/processes.ts'

const PASSES = 3
const SETTLE_MS = 5
/** A parent that never stands must not keep its children running. */
const MOST_TRIES = 5

export class Throttle {
  readonly #init: number
  #paused: Member[] = []
  #tries = 0

  constructor(init: number) {
    this.#init = init
  }

  get isPaused(): boolean {
    return this.#paused.length > 0
  }

  /**
   * Everything but the init, which only reaps. A process that its user had stopped stays theirs to wake. False when a
   * parent could not be brought to stand before its children, and all are running again: to be tried anew.
   */
  pause(): boolean {
    const patient = this.#tries++ < MOST_TRIES
    const seen = new Set<number>()
    for (let pass = 0; pass < PASSES; pass++) {
      const fresh = listTree(this.#init).filter(({ pid, depth }) => depth > 0 && !seen.has(pid))
      // What was forked while its parent was being paused turns up in the next pass.
      if (fresh.length === 0) break
      for (let depth = 1, level = fresh; level.length > 0; depth++) {
        const now = level.filter(member => member.depth <= depth)
        level = level.filter(member => member.depth > depth)
        const stopped = now.filter(member => {
          seen.add(member.pid)
          const state = statFields(member.pid)?.[0]
          return state !== undefined && !'TtZX'.includes(state) && signal(member.pid, 'SIGSTOP')
        })
        this.#paused.push(...stopped)
        if (level.length === 0 || settle(stopped) || !patient) continue
        this.resume()
        return false
      }
    }
    this.#tries = 0
    return true
  }

  resume(): void {
    const paused = this.#paused.sort((a, b) => b.depth - a.depth)
    this.#paused = []
    for (const { pid } of paused) signal(pid, 'SIGCONT')
  }
}

/** A parent that is about to stop could still see its child stop first: only one that stands, or cannot look, is safe. */
function settle(stopped: readonly Member[]): boolean {
  const deadline = performance.now() + SETTLE_MS
  const stands = (pid: number): boolean => {
    const state = statFields(pid)?.[0]
    return state === undefined || 'TtZXD'.includes(state)
  }
  for (const { pid } of stopped) while (!stands(pid)) if (performance.now() > deadline) return false
  return true
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}
