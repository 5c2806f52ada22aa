/** The name of a sandbox's cgroup says which pen made it, so that the next one knows whether it is still wanted. */
import { readKernelFile } from '../base/kernel/kernel-file.ts'

export interface Owner {
  readonly pid: number
  /** Clock ticks since boot: together with the pid it names one process, for ever. */
  readonly startTime: string
}

const NAME = /^pen-(\d+)-(\d+)-([A-Za-z0-9_.-]+)$/

/** undefined when there is no such process, or it is a zombie that waits for its parent. */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readKernelFile(`/proc/${pid}/stat`)
    // The command's name is hostile and may hold spaces and brackets: what counts comes after the last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

export function cgroupName(runId: string): string {
  const safe = /[^A-Za-z0-9_.-]/.test(runId) ? runId.replace(/[^A-Za-z0-9_.-]/g, '-') : runId
  return `pen-${process.pid}-${startTimeOf(process.pid) ?? '0'}-${safe.slice(0, 100) || 'run'}`
}

export function ownerOf(name: string): Owner | undefined {
  const [, pid, startTime] = NAME.exec(name) ?? []
  return pid === undefined || startTime === undefined ? undefined : { pid: Number(pid), startTime }
}

/** The run that it is named for. */
export const runOf = (name: string): string | undefined => NAME.exec(name)?.[3]

export const isAlive = (owner: Owner): boolean => startTimeOf(owner.pid) === owner.startTime
