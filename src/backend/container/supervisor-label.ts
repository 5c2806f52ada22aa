/**
 * Which pen keeps a container, on the container itself: another pen sees by it whether it is still wanted. A daemon may be shared by other
 * users, and by pens in containers of their own: a supervisor that this pen could not see is never taken for dead.
 */
import { readlinkSync } from 'node:fs'
import { isAlive, startTimeOf } from '../../base/kernel/processes.ts'

export const SUPERVISOR_LABEL = 'pen.supervisor'

const LABEL = /^(\d+):(\d+):(\d+):(\d+)$/

export const supervisorLabel = (): string =>
  [process.pid, startTimeOf(process.pid) ?? '0', processNamespace(), process.geteuid?.() ?? 0].join(':')

/** Whether its supervisor is dead for certain. A container without such a label is somebody else's. */
export function isLeft(label: string): boolean {
  const [, pid, startTime, namespace, user] = LABEL.exec(label) ?? []
  if (pid === undefined || startTime === undefined || namespace !== processNamespace()) return false
  const own = process.geteuid?.() ?? 0
  // Where /proc hides what is not one's own, only root sees everybody's.
  return (own === 0 || Number(user) === own) && !isAlive({ pid: Number(pid), startTime })
}

/** A number of a process means nothing in another one. */
const processNamespace = (): string => /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0'
