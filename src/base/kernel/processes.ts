/** Processes of this machine, as /proc shows them. Names and titles are hostile: only numbers are read. */
import { existsSync, readdirSync } from 'node:fs'
import { readKernelFile } from './kernel-file.ts'

/** Names one process for ever: a pid alone may be given to another. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since boot. */
  readonly startTime: string
}

export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => startTimeOf(pid) === startTime

const START_TIME = 19

/** Undefined when there is no such process, or it is a zombie that its parent has not reaped. */
export function startTimeOf(pid: number): string | undefined {
  const fields = statFields(pid)
  return fields === undefined || isZombie(fields) ? undefined : fields[START_TIME]
}

/** Fields of `/proc/PID/stat` from the state on. The process chooses its name and may put spaces and brackets into it. */
export function statFields(pid: number): string[] | undefined {
  const stat = readOrEmpty(`/proc/${pid}/stat`)
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

export const isZombie = ([state]: readonly string[]): boolean => state === 'Z' || state === 'X'

/** Every process that this pid namespace shows. */
export const allPids = (): number[] =>
  readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? [Number(name)] : []))

/** The open descriptors of a process, as paths that can be examined; none when pen may not look. */
export function descriptorsOf(pid: number): string[] {
  const dir = `/proc/${pid}/fd`
  try {
    return readdirSync(dir).map(name => `${dir}/${name}`)
  } catch {
    return []
  }
}

export interface Member {
  readonly pid: number
  readonly depth: number
}

/** More than any limit allows: a tree that grows while it is walked must not delay pen. */
const MOST = 20_000

let childrenFiles: boolean | undefined

/**
 * A process and its descendants, parents before children. A process that loses its parent is adopted by the init of its
 * pid namespace or by a subreaper, so the tree below either of these is complete.
 */
export function listTree(root: number): Member[] {
  childrenFiles ??= existsSync(`/proc/self/task/${process.pid}/children`)
  const children = childrenFiles ? childrenOf : childrenByParent()
  const members: Member[] = existsSync(`/proc/${root}`) ? [{ pid: root, depth: 0 }] : []
  const seen = new Set([root])
  for (let i = 0; i < members.length && members.length < MOST; i++) {
    const { pid, depth } = members[i] as Member
    for (const child of children(pid)) {
      // A process that is adopted during the walk is listed twice.
      if (seen.has(child)) continue
      seen.add(child)
      members.push({ pid: child, depth: depth + 1 })
    }
  }
  return members
}

export const listTrees = (roots: readonly number[]): Member[] => roots.flatMap(listTree)

/** A child is listed with the thread that forked it. */
export function childrenOf(pid: number): number[] {
  let threads: string[]
  try {
    threads = readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
  return threads.flatMap(thread =>
    readOrEmpty(`/proc/${pid}/task/${thread}/children`)
      .split(' ')
      .filter(word => word !== '')
      .map(Number),
  )
}

/** For kernels without the `children` files: one look at every process of the machine. */
function childrenByParent(): (pid: number) => number[] {
  const children = new Map<number, number[]>()
  for (const pid of allPids()) {
    const parent = Number(statFields(pid)?.[1])
    const list = children.get(parent)
    if (list === undefined) children.set(parent, [pid])
    else list.push(pid)
  }
  return pid => children.get(pid) ?? []
}

function readOrEmpty(path: string): string {
  try {
    return readKernelFile(path)
  } catch {
    return ''
  }
}
