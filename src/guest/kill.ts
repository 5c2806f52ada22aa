/**
 * Kills everything that one execution started. The kernel reports its group and its session. A process that left both
 * is known by its ancestors or by an inherited variable. One that dropped the variable too is known by its start time.
 * A process that hides from all of these, while other executions run, ends with the sandbox.
 */
import { readFileSync } from 'node:fs'
import { signal } from '../base/kernel/end-processes.ts'
import { allPids, isZombie, statFields } from '../base/kernel/processes.ts'
import { asUser, type User } from './as-user.ts'
import type { Ticks } from './spans.ts'

/** The variable that marks the processes of an execution. */
export const MARK = 'PEN_EXEC'

/** The field of /proc/PID/stat, after the name, with the start time. */
const START = 19

/** A process that forks during a scan is found by the next one. */
const ROUNDS = 100

interface Seen {
  readonly pid: number
  readonly parent: number
  readonly session: number
  readonly start: Ticks
}

export interface Wanted {
  /** The first process. Undefined when it has ended, because its pid may be reused. */
  readonly leader: number | undefined
  readonly mark: string
  /** The process that adopts orphans: the namespace's first process, or the exec daemon. */
  readonly init: number
  /** True when no other execution ran at that time. */
  readonly isAlone: (start: Ticks) => boolean
}

export async function killAll(wanted: Wanted, user: User | undefined): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const found = asUser(user, () => processesOf(below(wanted.init, processes()), wanted))
    if (found.length === 0) return
    for (const pid of found) signal(pid, 'SIGKILL')
    await Bun.sleep(1)
  }
}

/** Never includes the init and the exec daemon, whatever they appear to belong to. */
function processesOf(all: readonly Seen[], { leader, mark, init, isAlone }: Wanted): number[] {
  const marks = new Map(all.map(({ pid }) => [pid, markOf(pid)]))
  // Marks of earlier executions, whose processes may still fork. Any other mark is forged.
  const others = new Set(all.flatMap(({ pid, start }) => (isAlone(start) ? [] : marks.get(pid))))
  const isOwn = ({ pid, parent, session, start }: Seen): boolean => {
    if (pid === leader || session === leader || marks.get(pid) === mark) return true
    const isOrphan = parent === init && isAlone(start)
    return isOrphan && (marks.get(pid) === undefined || !others.has(marks.get(pid)))
  }
  return [...withChildren(all, new Set(all.filter(isOwn).map(({ pid }) => pid)))]
}

function withChildren(all: readonly Seen[], family: Set<number>): Set<number> {
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid)
  }
  return family
}

/** In a PID namespace that is every process. On a host, other processes are not pen's, whatever their variables say. */
function below(init: number, all: readonly Seen[]): readonly Seen[] {
  if (init === 1) return all
  const family = withChildren(all, new Set([init]))
  return all.filter(({ pid }) => family.has(pid))
}

function processes(): Seen[] {
  return allPids().flatMap(pid => {
    const fields = pid === 1 || pid === process.pid ? undefined : statFields(pid)
    if (fields === undefined || isZombie(fields)) return []
    const [, parent, , session] = fields
    return [{ pid, parent: Number(parent), session: Number(session), start: Number(fields[START]) }]
  })
}

/** Undefined for a process without the mark, or when its variables cannot be read. */
const markOf = (pid: number): string | undefined => VARIABLE.exec(`\0${read(`/proc/${pid}/environ`)}`)?.[1]

const VARIABLE = new RegExp(`\\0${MARK}=([^\\0]*)`)

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
