/** The resource usage of a sandbox's processes, from the host's /proc. */
import { readFileSync } from 'node:fs'
import { statFields } from '../base/kernel/processes.ts'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Linux reports CPU time in hundredths of a second, at every timer frequency. */
const TICK_MS = 10

/** The CPU time of a process and its reaped children. Sum it over the living processes of a tree. */
export function cpuMsOf(pid: number): number {
  const fields = statFields(pid)
  return fields === undefined ? 0 : [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0) * TICK_MS
}

/** Bytes that a process and its reaped children wrote to disk, without cancelled writes. */
export function writtenBy(pid: number): number {
  const io = read(`/proc/${pid}/io`)
  const value = (key: string): number => Number(new RegExp(`^${key}: (\\d+)`, 'm').exec(io)?.[1] ?? 0)
  return Math.max(0, value('write_bytes') - value('cancelled_write_bytes'))
}

interface Memory {
  readonly anonymous: number
  readonly shared: number
  readonly threads: number
}

const kib = (text: string, key: string): number =>
  Number(new RegExp(`^${key}:\\s*(\\d+)`, 'm').exec(text)?.[1] ?? 0) * 1024

/** Cheap, and never too low: pages shared after a fork count in each process. */
export function memoryOf(pid: number): Memory {
  const text = read(`/proc/${pid}/status`)
  return {
    anonymous: kib(text, 'RssAnon') + kib(text, 'VmSwap'),
    shared: kib(text, 'RssShmem'),
    threads: Number(/^Threads:\s*(\d+)/m.exec(text)?.[1] ?? 0),
  }
}

/** Exact and slow: the kernel walks the page tables and divides each shared page among its users. */
export function shareOf(pid: number): Pick<Memory, 'anonymous' | 'shared'> | undefined {
  const text = read(`/proc/${pid}/smaps_rollup`)
  if (!text.includes('Pss_Anon')) return undefined
  return { anonymous: kib(text, 'Pss_Anon') + kib(text, 'SwapPss'), shared: kib(text, 'Pss_Shmem') }
}
