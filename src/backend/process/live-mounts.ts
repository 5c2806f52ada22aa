/**
 * Mounts in a sandbox that already runs. The sandbox cannot make any itself, and pen is not in its namespaces: a pen in
 * hidden mode enters them for the moment that it takes. It enters the user namespace that owns the mounts, which is
 * bubblewrap's outer one; root needs none, and would lose its power in it.
 */
import { closeSync, constants, lstatSync, openSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { isHostRoot } from '../../base/host-root.ts'
import type { HoldRequest, HoldResult, LiveMounts, Seen } from '../backend.ts'
import { findBeneath, O_PATH } from './beneath-root.ts'
import { SystemCallError, systemCall } from './libc.ts'
import { MOUNT_MODE, type MountOrder } from './mount-inside.ts'
import { NOTHING } from './nothing.ts'

const IOCTL = process.arch === 'arm64' ? 29 : 16
const NS_GET_USERNS = 0xb701
const TIME_LIMIT_MS = 2000

/** Descriptors of a sandbox. While they are open its mounts exist. */
interface Entrance {
  readonly mounts: number
  readonly owner: number
  readonly root: number
}

export class ProcessMounts implements LiveMounts {
  readonly #initPid: () => number | undefined
  #entrance: Entrance | undefined
  #child: Bun.Subprocess | undefined
  #life: 'open' | 'closed' = 'open'

  constructor(initPid: () => number | undefined) {
    this.#initPid = initPid
  }

  ready(): boolean {
    if (this.#life === 'closed') return false
    this.#entrance ??= openEntrance(this.#initPid())
    return this.#entrance !== undefined
  }

  look(path: string): Seen | undefined {
    if (!this.ready() || this.#entrance === undefined) return undefined
    return findBeneath(this.#entrance.root, path, ({ dev, ino, kind, mountPoint }) => ({
      dev,
      ino,
      kind,
      mountPoint,
    }))
  }

  async hold(requests: readonly HoldRequest[]): Promise<readonly HoldResult[]> {
    return await this.#carryOut(
      requests.map(({ how, path, dev, ino }) => ({ how, path, dev: String(dev), ino: String(ino) })),
    )
  }

  /** For mounts of a sandbox whose command has not started yet. */
  async makeNoexec(mountPoints: readonly string[]): Promise<readonly HoldResult[]> {
    return await this.#carryOut(
      mountPoints.map(path => {
        const seen = this.look(path)
        return { how: 'noexec', path, dev: String(seen?.dev), ino: String(seen?.ino) }
      }),
    )
  }

  async #carryOut(orders: readonly MountOrder[]): Promise<readonly HoldResult[]> {
    const all = (result: HoldResult) => orders.map(() => result)
    const nsenter = findTool('nsenter')
    if (nsenter === undefined) return all({ failed: 'nsenter is not installed' })
    if (!this.ready() || this.#entrance === undefined) return all({ failed: 'the sandbox cannot be entered' })
    const { mounts, owner, root } = this.#entrance
    const user = isHostRoot() ? [] : ['--user=/proc/self/fd/4', '--preserve-credentials']
    const words = [nsenter, ...user, '--mount=/proc/self/fd/3', '--root=/', '--wd=/', '--']
    const start = () =>
      Bun.spawn([...words, ...self(), MOUNT_MODE], {
        stdio: [Buffer.from(JSON.stringify(orders)), 'pipe', 'pipe', mounts, owner, root],
        env: {},
        cwd: '/',
      })
    let child: ReturnType<typeof start>
    try {
      child = start()
    } catch (error) {
      return all({ failed: errnoOf(error) ?? 'nsenter could not be started' })
    }
    this.#child = child
    const timer = setTimeout(() => child.kill('SIGKILL'), TIME_LIMIT_MS)
    const [said, complaint, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    clearTimeout(timer)
    this.#child = undefined
    if (code !== 0) return all({ failed: complaint.trim().split('\n').at(-1) || `exit ${code}` })
    return JSON.parse(said) as HoldResult[]
  }

  close(): void {
    this.#life = 'closed'
    this.#child?.kill('SIGKILL')
    if (this.#entrance !== undefined) for (const fd of Object.values(this.#entrance)) closeSync(fd)
    this.#entrance = undefined
  }
}

/** Undefined while bubblewrap is still building the tree, and when the sandbox is gone. */
function openEntrance(init: number | undefined): Entrance | undefined {
  if (init === undefined) return undefined
  const open: number[] = []
  const keep = (fd: number): number => {
    open.push(fd)
    return fd
  }
  try {
    const root = keep(openSync(`/proc/${init}/root`, O_PATH | constants.O_DIRECTORY))
    // Only a finished sandbox has it: before, the process still sees the host's root or an empty one.
    if (lstatSync(`/proc/self/fd/${root}${NOTHING}`, { throwIfNoEntry: false }) !== undefined) {
      const mounts = keep(openSync(`/proc/${init}/ns/mnt`, 'r'))
      const owner = keep(systemCall('ioctl', IOCTL, mounts, NS_GET_USERNS))
      return { mounts, owner, root }
    }
  } catch (error) {
    if (errnoOf(error) === undefined && !(error instanceof SystemCallError)) throw error
  }
  for (const fd of open) closeSync(fd)
  return undefined
}

/** This very program: the compiled binary, or Bun with the source it runs from. */
function self(): readonly string[] {
  if (import.meta.path.startsWith('/$bunfs/')) return [process.execPath]
  return [process.execPath, new URL('../../main.ts', import.meta.url).pathname]
}
