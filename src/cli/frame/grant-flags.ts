/** How long an answer holds: `pen allow` and `pen deny` without a flag last, these end by themselves. */
import { auditDirectory } from '../../audit/directory.ts'
import { runningRuns } from '../../audit/running.ts'
import { PenError } from '../../base/error.ts'
import { showMillis, toMillis } from '../../base/quantity.ts'
import { addGrants, type GrantOrder, removeGrants } from '../../config/grants/network-grants.ts'
import type { Project } from '../../config/project.ts'
import type { AllowRule, DenyRule } from '../../policy/network/net-rule.ts'
import { defineFlags, type FlagValues } from './flag-spec.ts'

export const lifeFlags = defineFlags({
  once: { kind: 'boolean', about: 'for the next connection there, within ten minutes or what --for says' },
  for: { kind: 'duration', value: 'DURATION', about: 'for this long, as 90s, 10m or 1h' },
  session: { kind: 'boolean', about: 'until the sandbox that runs now ends' },
})

type Life = FlagValues<typeof lifeFlags>

/** One that nobody needed must not lie there until somebody else does. */
const ONCE_WITHIN = toMillis(600_000)

/** Undefined when the answer is to last; else in words for how long it holds. */
export async function grantForAWhile(
  project: Project,
  life: Life,
  order: Pick<GrantOrder, 'effect' | 'by'> & { readonly rules: readonly (AllowRule | DenyRule)[] },
): Promise<string | undefined> {
  const { once, session, for: ms } = life
  if (!once && !session && ms === undefined) return undefined
  if (session && (once || ms !== undefined))
    throw new PenError('USAGE', {
      what: '--session ends with the sandbox, and takes no other end',
      hint: 'keep one of --session, --once and --for',
    })
  const running = runningRuns(auditDirectory(project.stateDir))
  await removeGrants(project.stateDir, ({ run }) => run !== undefined && !running.includes(run))
  if (session && running.length === 0)
    throw new PenError('STATE', {
      what: 'no sandbox of this project is running',
      at: '--session',
      hint: 'leave --session out to let it last, or write --for 1h',
    })
  const within = ms ?? ONCE_WITHIN
  const until = session ? undefined : new Date(Date.now() + within)
  const runs = session ? running : [undefined]
  addGrants(
    project.stateDir,
    order.rules.flatMap(rule => runs.map(run => ({ ...order, rule, once, run, until }))),
  )
  if (session)
    return running.length === 1 ? 'until the sandbox ends' : `until the ${running.length} sandboxes end`
  return once ? `for one connection, within ${showMillis(within)}` : `for ${showMillis(within)}`
}
