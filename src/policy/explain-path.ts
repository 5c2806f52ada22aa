import { PenError } from '../base/error.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { type Explanation, explainFile } from './explain.ts'
import type { FileAccess } from './files/decide-file.ts'
import { absolute, type HostPath, type PathWorld } from './files/path.ts'
import type { Policy } from './policy.ts'

/** Checks both the name and its target, because a rule for the name of a link applies wherever the link points. */
export function explainPath(
  policy: Policy,
  text: string,
  access: FileAccess,
  { world, cwd }: { readonly world: PathWorld; readonly cwd: HostPath },
): Explanation {
  const { home, locate } = world
  // Only the typed part is checked. The current directory can have any name.
  const typed = absolute(text, { home, workspace: cwd })
  if (!typed.ok)
    throw new PenError('USAGE', {
      what: `${text}: ${typed.why}`,
      ...(typed.fix !== undefined && { hint: typed.fix }),
    })
  const named = typed.value
  const ofTarget = explainFile(policy, locate(named).real as HostPath, access)
  const ofName = explainFile(
    policy,
    `${locate(dirname(named)).real}/${basename(named)}`.replace('//', '/') as HostPath,
    access,
  )
  const isRefused = ofName.reason === 'denied-by-rule' || ofName.reason === 'protected'
  return named !== '/' && isRefused ? ofName : ofTarget
}
