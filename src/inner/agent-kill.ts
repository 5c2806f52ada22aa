/**
 * Ends all that one execution started. Its group and its session are the kernel's word; what left both is known by its
 * ancestors, or by a variable that every child inherits. A command that hides from all of these is ended with the sandbox.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { asUser, type User } from './as-user.ts'

/** The variable by which the processes of an execution are known. */
export const MARK = 'PEN_EXEC'

/** A process that forks while it is looked for is found the next time. */
const ROUNDS = 100

interface Seen {
  readonly pid: number
  readonly parent: number
  readonly session: number
}

export async function killAll(leader: number, mark: string, user: User | undefined): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const found = belonging(processes(), leader, mark, user)
    if (found.length === 0) return
    for (const pid of found) kill(pid)
    await Bun.sleep(1)
  }
}

/** Of an execution whose first process is gone, and its number perhaps given to another. */
export const killMarked = (mark: string, user: User | undefined): Promise<void> => killAll(NOBODY, mark, user)

const NOBODY = -1

/** Neither the init nor the agent, whatever they are said to belong to. */
function belonging(all: readonly Seen[], leader: number, mark: string, user: User | undefined): number[] {
  const family = new Set([leader])
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent, session } of all) if (session === leader || family.has(parent)) family.add(pid)
  }
  const variable = `\0${MARK}=${mark}\0`
  return asUser(user, () =>
    all.flatMap(({ pid }) => (family.has(pid) || `\0${environment(pid)}`.includes(variable) ? [pid] : [])),
  )
}

function processes(): Seen[] {
  return readdirSync('/proc').flatMap(name => {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === 1 || pid === process.pid) return []
    const stat = read(`/proc/${pid}/stat`)
    // The name stands in brackets and is the process's own to choose; what follows the last one is the kernel's.
    const [state, parent, , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === undefined || state === 'Z' || state === 'X' || state === '') return []
    return [{ pid, parent: Number(parent), session: Number(session) }]
  })
}

const environment = (pid: number): string => read(`/proc/${pid}/environ`)

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Gone in this very moment.
  }
}
