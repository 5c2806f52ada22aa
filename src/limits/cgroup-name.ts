/** The name of a sandbox's cgroup contains its owner, so that another pen knows whether it is still used. */
import { readdirSync } from 'node:fs'
import { isAlive, type ProcessIdentity, startTimeOf } from '../base/kernel/processes.ts'

const NAME = /^pen-(\d+)-(\d+)-([A-Za-z0-9_.-]+)$/

export function cgroupName(runId: string): string {
  const safe = /[^A-Za-z0-9_.-]/.test(runId) ? runId.replace(/[^A-Za-z0-9_.-]/g, '-') : runId
  return `pen-${process.pid}-${startTimeOf(process.pid) ?? '0'}-${safe.slice(0, 100) || 'run'}`
}

export function ownerOf(name: string): ProcessIdentity | undefined {
  const [, pid, startTime] = NAME.exec(name) ?? []
  return pid === undefined || startTime === undefined ? undefined : { pid: Number(pid), startTime }
}

/** The id of the run in a cgroup's name. */
export const runOf = (name: string): string | undefined => NAME.exec(name)?.[3]

/** The names in a directory whose pen is dead. */
export const namesOfDead = (dir: string): string[] =>
  readdirSync(dir).filter(name => {
    const owner = ownerOf(name)
    return owner !== undefined && !isAlive(owner)
  })
