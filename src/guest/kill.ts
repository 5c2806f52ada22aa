/**
 * Ends all that one execution started. Its group and its session are the kernel's word; what left both is known by its
 * ancestors, by a variable that every child inherits, or, if it threw that away too, by when it was started. A command that hides from
 * all of these, while others run, is ended with the sandbox.
 */
import { readFileSync } from 'node:fs'
import { signal } from '../base/kernel/end-processes.ts'
import { allPids, isZombie, statFields } from '../base/kernel/processes.ts'
import { asUser, type User } from './as-user.ts'
import type { Ticks } from './spans.ts'

/** The variable by which the processes of an execution are known. */
export const MARK = 'PEN_EXEC'

/** Which field of /proc/PID/stat, after the name, says when it was started. */
const START = 19

/** A process that forks while it is looked for is found the next time. */
const ROUNDS = 100

interface Seen {
  readonly pid: number
  readonly parent: number
  readonly session: number
  readonly start: Ticks
}

export interface Wanted {
  /** The first process, unless it is gone: its number may be another's by now. */
  readonly leader: number | undefined
  readonly mark: string
  /** Who is left the children of all others: the first process of the namespace, or the exec daemon. */
  readonly init: number
  /** Whether no other execution ran at a time. */
  readonly isAlone: (start: Ticks) => boolean
}

export async function killAll(wanted: Wanted, user: User | undefined): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const found = asUser(user, () => belonging(below(wanted.init, processes()), wanted))
    if (found.length === 0) return
    for (const pid of found) signal(pid, 'SIGKILL')
    await Bun.sleep(1)
  }
}

/** Neither the init nor the exec daemon, whatever they are said to belong to. */
function belonging(all: readonly Seen[], { leader, mark, init, isAlone }: Wanted): number[] {
  const marks = new Map(all.map(({ pid }) => [pid, markOf(pid)]))
  // Left by earlier executions: what these start has their mark. Any other mark is a disguise.
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

/** In a namespace that is all of them. On a host the others are somebody else's, whatever their variables say. */
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

/** Undefined for a process without, or whose variables cannot be read. */
const markOf = (pid: number): string | undefined => VARIABLE.exec(`\0${read(`/proc/${pid}/environ`)}`)?.[1]

const VARIABLE = new RegExp(`\\0${MARK}=([^\\0]*)`)

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
