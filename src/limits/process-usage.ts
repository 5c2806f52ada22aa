/** What the processes of a sandbox use, as the host's /proc shows it. */
import { readFileSync } from 'node:fs'
import { statFields } from '../base/kernel/processes.ts'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
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
