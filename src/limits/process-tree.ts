/**
 * The processes of a sandbox, from the host. Whatever forks twice or leaves its session is adopted by the init of the
 * sandbox's pid namespace, so the descendants of the init are all there is. Names and titles are hostile: only numbers are read.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'

export interface Member {
  readonly pid: number
  readonly depth: number
}

/** More than any limit allows: a tree that grows while it is walked must not hold pen up. */
const MOST = 20_000

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

let childrenFiles: boolean | undefined

/** Init first, parents before children. */
export function listTree(init: number): Member[] {
  childrenFiles ??= existsSync(`/proc/self/task/${process.pid}/children`)
  const childrenOf = childrenFiles ? childrenByThread : childrenByParent()
  const members: Member[] = existsSync(`/proc/${init}`) ? [{ pid: init, depth: 0 }] : []
  const seen = new Set([init])
  for (let i = 0; i < members.length && members.length < MOST; i++) {
    const { pid, depth } = members[i] as Member
    for (const child of childrenOf(pid)) {
      // Adopted by the init while we walk, a process could turn up twice.
      if (seen.has(child)) continue
      seen.add(child)
      members.push({ pid: child, depth: depth + 1 })
    }
  }
  return members
}

/** A child is listed with the thread that forked it. */
function childrenByThread(pid: number): number[] {
  let threads: string[]
  try {
    threads = readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
  return threads.flatMap(thread =>
    read(`/proc/${pid}/task/${thread}/children`)
      .split(' ')
      .filter(word => word !== '')
      .map(Number),
  )
}

/** For kernels built without the `children` files: one look at every process of the machine. */
function childrenByParent(): (pid: number) => number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = Number(statFields(Number(name))?.[1])
    const list = children.get(parent)
    if (list === undefined) children.set(parent, [Number(name)])
    else list.push(Number(name))
  }
  return pid => children.get(pid) ?? []
}

/** Fields of `/proc/PID/stat` from the state on. */
export function statFields(pid: number): string[] | undefined {
  const stat = read(`/proc/${pid}/stat`)
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Linux reports CPU time in hundredths of a second, whatever the timer's frequency is. */
const TICK_MS = 10

/** CPU time of a process and of all its reaped children. For a whole tree, sum over the living. */
export function cpuMsOf(pid: number): number {
  const fields = statFields(pid)
  return fields === undefined ? 0 : [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0) * TICK_MS
}

/** Bytes sent to disk by a process and all its reaped children, less what was thrown away before it got there. */
export function writtenBy(pid: number): number {
  const io = read(`/proc/${pid}/io`)
  const value = (key: string): number => Number(new RegExp(`^${key}: (\\d+)`, 'm').exec(io)?.[1] ?? 0)
  return Math.max(0, value('write_bytes') - value('cancelled_write_bytes'))
}

export interface Memory {
  readonly anonymous: number
  readonly shared: number
  readonly threads: number
}

const kib = (text: string, key: string): number =>
  Number(new RegExp(`^${key}:\\s*(\\d+)`, 'm').exec(text)?.[1] ?? 0) * 1024

/** Cheap, and never too little: pages shared by a fork are counted in each process. */
export function memoryOf(pid: number): Memory {
  const text = read(`/proc/${pid}/status`)
  return {
    anonymous: kib(text, 'RssAnon') + kib(text, 'VmSwap'),
    shared: kib(text, 'RssShmem'),
    threads: Number(/^Threads:\s*(\d+)/m.exec(text)?.[1] ?? 0),
  }
}

/** Exact, and slow: the kernel walks the page tables. Each page is divided among those who share it. */
export function shareOf(pid: number): Pick<Memory, 'anonymous' | 'shared'> | undefined {
  const text = read(`/proc/${pid}/smaps_rollup`)
  if (!text.includes('Pss_Anon')) return undefined
  return { anonymous: kib(text, 'Pss_Anon') + kib(text, 'SwapPss'), shared: kib(text, 'Pss_Shmem') }
}
