/** The user that root's sandbox processes run as on the host. */
import { lstatSync, readFileSync } from 'node:fs'
import type { HostFacts } from '../plan/facts.ts'

/** Far above the ids that systems assign, and different for each project, so that two sandboxes are two users. */
const UNUSED_UIDS = 0x70000000

export function unprivilegedUser(workspace: string, id: string): NonNullable<HostFacts['unprivilegedUser']> {
  const owner = lstatSync(workspace)
  if (owner.uid !== 0) return { uid: owner.uid, gid: groupOf(owner), owner: true }
  const uid = UNUSED_UIDS + Number.parseInt(id.slice(-6), 16)
  return { uid, gid: uid, owner: false }
}

/** A sandbox is never in root's group. If the project is, the owner's group from /etc/passwd is used, or one equal to the uid. */
function groupOf({ uid, gid }: { readonly uid: number; readonly gid: number }): number {
  if (gid !== 0) return gid
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
  return Number(users.find(fields => fields[2] === String(uid))?.[3]) || uid
}
