/** Every live descendant of this test, even after it forked away from its parent. */
import { afterAll, beforeAll } from 'bun:test'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { systemCall } from '../../src/base/kernel/system-call.ts'
import { Stopwatch } from '../stopwatch.ts'

const PR_SET_CHILD_SUBREAPER = 36

/**
 * For the tests of one file: orphans become children of this process instead of the system's init, so that none
 * can hide. This process does not reap them; with thousands of zombies everything would get slow.
 */
export function adoptOrphans(): void {
  if (process.platform !== 'linux') return
  const set = (on: 0 | 1): void => void systemCall('prctl', PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)
  beforeAll(() => set(1))
  afterAll(() => set(0))
}

export interface Process {
  readonly pid: number
  readonly command: string
}

export function descendants(): Process[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? read(`/proc/${name}/stat`) : undefined
    const [state, parent] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
    // A zombie is only an unreaped number.
    if (parent === undefined || state === 'Z' || state === 'X') continue
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(name)])
  }
  const found: number[] = []
  for (const queue = [process.pid]; queue.length > 0; ) {
    const next = children.get(queue.pop() ?? 0) ?? []
    found.push(...next)
    queue.push(...next)
  }
  return found.map(pid => ({
    pid,
    command: (read(`/proc/${pid}/cmdline`) ?? '').replaceAll('\0', ' ').trim(),
  }))
}

/** Waits until every new descendant is gone. Returns what is left after the time. */
export async function untilAlone(known: ReadonlySet<number>, withinMs: number): Promise<Process[]> {
  const watch = new Stopwatch()
  for (;;) {
    const left = descendants().filter(({ pid }) => !known.has(pid))
    if (left.length === 0 || watch.ms > withinMs) return left
    await Bun.sleep(5)
  }
}

const KINDS = ['mnt', 'pid', 'net', 'user', 'ipc', 'uts', 'cgroup']

/** The namespaces of these processes. */
export function namespacesOf(processes: readonly { readonly pid: number | string }[]): Set<string> {
  const ids = processes.flatMap(({ pid }) => KINDS.map(kind => link(`/proc/${pid}/ns/${kind}`) ?? ''))
  return new Set(ids.filter(id => id !== ''))
}

/** Those of all processes, also of an engine, which keeps its own as long as it wants. */
export const namespacesHere = (): Set<string> =>
  namespacesOf(readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? [{ pid: name }] : [])))

/** Which of these namespaces still have a process of the machine in them. */
export function stillUsed(namespaces: ReadonlySet<string>): string[] {
  const out: string[] = []
  for (const name of readdirSync('/proc'))
    if (/^\d+$/.test(name) && !/^State:\t[ZX]/m.test(read(`/proc/${name}/status`) ?? ''))
      for (const kind of KINDS) {
        const id = link(`/proc/${name}/ns/${kind}`)
        if (id !== undefined && namespaces.has(id)) out.push(`${id} in ${name}`)
      }
  return out
}

/** Mounts in the host's own namespace that belong to pen or to a directory. */
export const mountsAbout = (path: string): string[] =>
  (read('/proc/self/mountinfo') ?? '')
    .split('\n')
    .filter(line => line.includes(path) || / - tmpfs pen /.test(line))

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}
function link(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
