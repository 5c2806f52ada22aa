/**
 * A label on the container that names its supervisor. Another pen sees by it whether the container is an orphan. Other
 * users, and pens in other containers, may share a daemon. So a supervisor that this pen cannot see never counts as
 * dead.
 */
import { readlinkSync } from 'node:fs'
import { isAlive, startTimeOf } from '../../base/kernel/processes.ts'

export const SUPERVISOR_LABEL = 'pen.supervisor'

const LABEL = /^(\d+):(\d+):(\d+):(\d+)$/

export const supervisorLabel = (): string =>
  [process.pid, startTimeOf(process.pid) ?? '0', processNamespace(), process.geteuid?.() ?? 0].join(':')

/** True when the supervisor is certainly dead. A container without this label belongs to the user. */
export function isOrphan(label: string): boolean {
  const [, pid, startTime, namespace, user] = LABEL.exec(label) ?? []
  if (pid === undefined || startTime === undefined || namespace !== processNamespace()) return false
  const own = process.geteuid?.() ?? 0
  // When /proc hides the processes of other users, only root sees them all.
  return (own === 0 || Number(user) === own) && !isAlive({ pid: Number(pid), startTime })
}

/** A pid has no meaning in another PID namespace. */
const processNamespace = (): string => /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0'
