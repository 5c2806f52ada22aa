/**
 * Whether a process of a sandbox has a file open. A process that runs can pass a descriptor on while pen looks. So the answer
 * counts only when no thread of the sandbox ran meanwhile: none is in the state "running", and no counter of context switches
 * changed. Every descriptor counts, also one for reading: a process can open it again for writing. Mappings, and system calls
 * that wait with the file, cannot be opened again. The kernel knows whether one of them writes.
 */
import { closeSync, constants, openSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { errnoOf } from '../error.ts'
import { readKernelFile } from './kernel-file.ts'
import { listTree } from './processes.ts'
import { takeReadLease } from './read-lease.ts'
import { succeeded } from './system-call.ts'

export interface OpenFile {
  readonly path: string
  readonly dev: bigint
  readonly ino: bigint
}

/** More than this is unknown: a sandbox decides how many there are. */
const MAX_DESCRIPTORS = 50_000

/** Undefined when it cannot be known. `init` is the first process of the sandbox. */
export function isOpenInside(init: number, file: OpenFile): boolean | undefined {
  try {
    const before = stillThreads(init)
    if (before === undefined) return undefined
    const budget = { descriptors: MAX_DESCRIPTORS }
    for (const { path, isZombie } of before.values())
      if (!isZombie && (isThe(file, `${path}/exe`) || hasDescriptor(path, file, budget))) return true
    requireNoWriter(file)
    const after = stillThreads(init)
    const isStill = [...before].every(([thread, { switches }]) => after?.get(thread)?.switches === switches)
    return isStill && after?.size === before.size ? false : undefined
  } catch (error) {
    // A process ended meanwhile, or does not let itself be looked at.
    if (errnoOf(error) === undefined && !(error instanceof Unknown)) throw error
    return undefined
  }
}

class Unknown extends Error {}

interface Thread {
  readonly path: string
  readonly isZombie: boolean
  /** How often the kernel switched away from it. */
  readonly switches: string
}

/** Undefined when a thread is running. */
function stillThreads(init: number): ReadonlyMap<string, Thread> | undefined {
  const threads = new Map<string, Thread>()
  for (const { pid } of listTree(init))
    for (const tid of readdirSync(`/proc/${pid}/task`)) {
      const path = `/proc/${pid}/task/${tid}`
      const status = readKernelFile(`${path}/status`)
      // The process chooses its name, which is the first line.
      const [, state] = /\nState:\t(\w)/.exec(status) ?? []
      if (state === undefined || state === 'R') return undefined
      const switches = status.slice(status.lastIndexOf('\nvoluntary_ctxt_switches:'))
      threads.set(path, { path, isZombie: state === 'Z' || state === 'X', switches })
    }
  return threads.size === 0 ? undefined : threads
}

function hasDescriptor(thread: string, file: OpenFile, budget: { descriptors: number }): boolean {
  for (const name of readdirSync(`${thread}/fd`)) {
    if (--budget.descriptors < 0) throw new Unknown()
    const link = `${thread}/fd/${name}`
    if (isThe(file, link)) return true
    // A descriptor on its way through a socket is open, and in no table.
    const isSocket = readlinkSync(link).startsWith('socket:')
    if (isSocket && /^scm_fds:\s*[1-9]/m.test(readKernelFile(`${thread}/fdinfo/${name}`))) throw new Unknown()
  }
  return false
}

function isThe({ dev, ino }: OpenFile, link: string): boolean {
  const stats = statSync(link, { bigint: true, throwIfNoEntry: false })
  return stats !== undefined && stats.ino === ino && stats.dev === dev
}

/** The lease ends here. */
function requireNoWriter(file: OpenFile): void {
  const { O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = openSync(file.path, O_NOFOLLOW | O_NONBLOCK)
  try {
    if (!isThe(file, `/proc/self/fd/${fd}`)) throw new Unknown()
    succeeded('fcntl', takeReadLease(fd))
  } finally {
    closeSync(fd)
  }
}
