/**
 * Mounts in a running sandbox. The sandbox cannot mount, and pen is outside its namespaces, so a hidden mode of pen
 * enters them for a moment. It enters the user namespace that owns the mounts: bubblewrap's outer one, or the
 * container's. Root enters none, because it would lose its privileges there.
 */
import { closeSync, constants, lstatSync, openSync } from 'node:fs'
import { lookBeneath } from '../../base/beneath/open-beneath.ts'
import { errnoOf, PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { O_PATH } from '../../base/kernel/descriptor.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { enterMounts } from '../../base/kernel/process.ts'
import { startTimeOf } from '../../base/kernel/processes.ts'
import { runWithDescriptors } from '../../base/kernel/run-with-descriptors.ts'
import { succeeded, systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { ownProgram } from '../../base/own-program.ts'
import { EMPTY_FILE } from '../../protocol/guest-paths.ts'
import type { HoldRequest, HoldResult, LiveMounts, RootHelper, Seen } from '../backend.ts'
import type { ProgramAnswer, ProgramOrder } from './hide-programs.ts'
import {
  carryOutOrder,
  MOUNT_MODE,
  type MountAnswer,
  type MountOrder,
  type MountOrders,
} from './mount-orders.ts'

const NS_GET_USERNS = 0xb701
const TIME_LIMIT_MS = 2000
const READY_MS = 10_000
/** Time for a survey of a whole image. */
const SURVEY_MS = 10_000

/** Open descriptors of a sandbox. They keep its mounts alive. */
export interface Entrance {
  readonly mounts: number
  readonly owner: number
  readonly root: number
}

/** When pen may not enter, the root helper does. It needs no user namespace. */
interface EnteredByRootHelper {
  readonly helper: RootHelper
  readonly entrance: Omit<Entrance, 'owner'>
}

/** How to enter the mounts, which depends on the backend. */
export interface MountAccess {
  /** The path of an empty file without permissions in the sandbox. It exists as soon as the mounts are complete. */
  readonly emptyFile: string
  /** `one`: pen is the only id of the user namespace that owns the mounts. `many`: pen must become its uid 0. */
  readonly ids: 'one' | 'many'
  /** Present when pen itself may not enter. */
  readonly by?: EnteredByRootHelper
}

const BUBBLEWRAP_ACCESS: MountAccess = { emptyFile: EMPTY_FILE, ids: 'one' }

export class NamespaceMounts implements LiveMounts {
  readonly #initPid: () => number | undefined
  readonly #owner: MountAccess
  #entrance: Entrance | undefined
  readonly #ending = new AbortController()
  #life: 'open' | 'closed' = 'open'

  constructor(initPid: () => number | undefined, owner = BUBBLEWRAP_ACCESS) {
    this.#initPid = initPid
    this.#owner = owner
  }

  ready(): boolean {
    if (this.#life === 'closed') return false
    const { by, emptyFile } = this.#owner
    this.#entrance ??= by === undefined ? openEntrance(this.#initPid(), emptyFile) : entranceBy(by)
    return this.#entrance !== undefined
  }

  /** False when the sandbox ended before. */
  async untilReady(): Promise<boolean> {
    const init = this.#initPid()
    for (const end = performance.now() + READY_MS; performance.now() < end; await Bun.sleep(1)) {
      if (this.ready()) return true
      if (init === undefined || startTimeOf(init) === undefined) return false
    }
    throw new PenError('BACKEND', { what: 'bubblewrap did not finish the file tree in time' })
  }

  look(path: string): Seen | undefined {
    if (!this.ready() || this.#entrance === undefined) return undefined
    return lookBeneath(this.#entrance.root, path)
  }

  async hold(requests: readonly HoldRequest[]): Promise<readonly HoldResult[]> {
    return await this.carryOut(
      requests.map(({ how, path, dev, ino }) => ({ how, path, dev: String(dev), ino: String(ino) })),
    )
  }

  /**
   * Carries the orders out, in order, and returns one result for each. `trees` are detached mounts for orders that
   * place one.
   */
  async carryOut(
    orders: readonly MountOrder[],
    trees: readonly number[] = [],
  ): Promise<readonly HoldResult[]> {
    const answer = await this.#send({ orders }, trees)
    return 'failed' in answer ? orders.map(() => answer) : answer.results
  }

  /** For an image in which nothing has run yet. When one order of `first` fails, the whole call fails. */
  async hidePrograms(programs: ProgramOrder, first: readonly MountOrder[]): Promise<ProgramAnswer> {
    const answer = await this.#send({ orders: first, programs })
    if ('failed' in answer) return answer
    const undone = first.find((_, i) => answer.results[i] !== 'held')
    if (undone !== undefined) return { failed: `${undone.path} could not be made ${undone.how}` }
    return answer.programs ?? { failed: 'no answer' }
  }

  async #send(
    what: Omit<MountOrders, 'emptyFile' | 'trees'>,
    trees: readonly number[] = [],
  ): Promise<MountAnswer | { readonly failed: string }> {
    const nsenter = findTool('nsenter')
    if (nsenter === undefined) return { failed: 'nsenter is not installed' }
    if (!this.ready() || this.#entrance === undefined) return { failed: 'pen cannot enter the sandbox' }
    const { mounts, owner, root } = this.#entrance
    const { emptyFile, ids, by } = this.#owner
    const become = ids === 'one' ? ['--preserve-credentials'] : ['--setuid=0', '--setgid=0']
    const user = isHostRoot() || by !== undefined ? [] : ['--user=/proc/self/fd/4', ...become]
    const words = [nsenter, ...user, '--mount=/proc/self/fd/3', '--root=/', '--wd=/', '--']
    const argv = [...words, ...ownProgram(), MOUNT_MODE]
    const message: MountOrders = { emptyFile, ...what, trees: trees.length }
    const descriptors = [mounts, owner, root, ...trees]
    const timeoutMs = what.programs === undefined ? TIME_LIMIT_MS : SURVEY_MS
    try {
      const input = JSON.stringify(message)
      const order = { input, descriptors, timeoutMs, signal: this.#ending.signal }
      const { code, stdout, stderr } = await (by?.helper.run(argv, order) ?? runWithDescriptors(argv, order))
      if (code !== 0) return { failed: stderr.trim().split('\n').at(-1) || ended(code, timeoutMs) }
      return JSON.parse(stdout) as MountAnswer
    } catch (error) {
      if (error instanceof PenError) return { failed: error.message }
      return { failed: errnoOf(error) ?? 'nsenter did not start' }
    }
  }

  /**
   * Like `carryOut`, for a sandbox in which nothing runs yet. Without a new process, where pen may enter the mount
   * namespace itself.
   */
  async carryOutDirectly(
    orders: readonly MountOrder[],
    trees: readonly number[] = [],
  ): Promise<readonly HoldResult[]> {
    if (!isHostRoot() || !this.ready() || this.#entrance === undefined)
      return await this.carryOut(orders, trees)
    const { mounts, root } = this.#entrance
    const sandbox = { root, emptyFile: this.#owner.emptyFile, trees }
    return withinMounts(mounts, () => orders.map(order => carryOutOrder(order, sandbox)))
  }

  close(): void {
    this.#life = 'closed'
    this.#ending.abort()
    if (this.#entrance !== undefined)
      for (const fd of new Set(Object.values(this.#entrance))) closeSync(fd as number)
    this.#entrance = undefined
  }
}

/** Usually by the time limit. */
const KILLED = 128 + 9
const ended = (code: number, timeoutMs: number): string =>
  code === KILLED ? `killed after ${timeoutMs / 1000} seconds` : `exit ${code}`

/** The root helper enters no user namespace, so none is opened. */
const entranceBy = ({ entrance: { mounts, root } }: EnteredByRootHelper): Entrance => ({
  mounts,
  root,
  owner: mounts,
})

/** Undefined until the mounts are complete, and after the sandbox has ended. */
function openEntrance(init: number | undefined, emptyFile: string): Entrance | undefined {
  if (init === undefined) return undefined
  const open: number[] = []
  const keep = (fd: number): number => {
    open.push(fd)
    return fd
  }
  try {
    const root = keep(openSync(`/proc/${init}/root`, O_PATH | constants.O_DIRECTORY))
    // Only a complete sandbox has this file. Before, the process still sees the host's root or an empty one.
    if (lstatSync(`/proc/self/fd/${root}${emptyFile}`, { throwIfNoEntry: false }) !== undefined) {
      const mounts = keep(openSync(`/proc/${init}/ns/mnt`, 'r'))
      const owner = keep(systemCall('ioctl', mounts, NS_GET_USERNS))
      return { mounts, owner, root }
    }
  } catch (error) {
    if (errnoOf(error) === undefined && !(error instanceof CallFailed)) throw error
  }
  for (const fd of open) closeSync(fd)
  return undefined
}

/**
 * Moves this thread into the mount namespace of a sandbox, and back. Only the host's root may do this without a user
 * namespace. It is used only while nothing of the sandbox runs, and saves the start of a process. The root directory
 * stays the host's, so no path leads through the sandbox's files.
 */
function withinMounts<T>(mounts: number, work: () => T): T {
  const open = [openSync('/proc/thread-self/ns/mnt', 'r'), directory('/'), directory('.')] as const
  const [home, root, cwd] = open
  try {
    try {
      enterMounts(mounts, root)
      return work()
    } finally {
      // If this fails, every path of this process leads through the sandbox's mounts. The error then ends the process.
      enterMounts(home, root)
      succeeded('go back', tryCall('fchdir', cwd))
    }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

const directory = (path: string): number => openSync(path, O_PATH | constants.O_DIRECTORY)
