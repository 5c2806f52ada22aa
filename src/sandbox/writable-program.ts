/**
 * pen itself in what a sandbox may write, as where it was installed for one project: the sandbox could put another program in its place,
 * and the user's next command would start that, outside. It cannot be held like other places without holding all of `node_modules`.
 */
import { decideFile } from '../policy/decide-file.ts'
import { type HostPath, isWithin } from '../policy/path.ts'
import type { Policy } from '../policy/policy.ts'

/** What to tell; nothing where it is out of reach. */
export function warnOfWritableProgram(policy: Policy, program: string): string[] {
  const isMounted = policy.mounts.some(
    ({ rule }) => rule.kind === 'host' && rule.mode === 'rw' && isWithin(program, rule.host),
  )
  if (!isMounted && !decideFile(policy, program as HostPath, 'write').ok) return []
  return [
    `the sandbox may write where pen itself is installed, and could put another program in its place that your next command starts (${program}): install pen outside of the project and of what you grant`,
  ]
}
