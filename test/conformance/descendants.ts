/** Everything that was started below this test and still lives, however often it forked away from its parent. */
import { afterAll, beforeAll } from 'bun:test'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { systemCall } from '../../src/base/kernel/system-call.ts'
import { Stopwatch } from '../stopwatch.ts'

const PR_SET_CHILD_SUBREAPER = 36

/**
 * For the tests of a file: orphans become this process's children instead of the system's, so that none can hide. Nobody asks for those
 * that end: for longer than that, thousands of them would make everything slow.
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
    // A zombie is only a number that nobody asked for yet.
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

/** Waits until none is left that was not there before; returns what is there after the time. */
export async function untilAlone(known: ReadonlySet<number>, withinMs: number): Promise<Process[]> {
  const watch = new Stopwatch()
  for (;;) {
    const left = descendants().filter(({ pid }) => !known.has(pid))
    if (left.length === 0 || watch.ms > withinMs) return left
    await Bun.sleep(5)
  }
}

const KINDS = ['mnt', 'pid', 'net', 'user', 'ipc', 'uts', 'cgroup']

/** The namespaces that these processes are in. */
export function namespacesOf(processes: readonly { readonly pid: number | string }[]): Set<string> {
  const ids = processes.flatMap(({ pid }) => KINDS.map(kind => link(`/proc/${pid}/ns/${kind}`) ?? ''))
  return new Set(ids.filter(id => id !== ''))
}

/** Those of everybody: of an engine too, which keeps its own for as long as it likes. */
export const namespacesHere = (): Set<string> =>
  namespacesOf(readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? [{ pid: name }] : [])))

/** Which of these some process of the machine is still in. */
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

/** Mounts of the host's own namespace that have to do with pen or with a directory. */
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
