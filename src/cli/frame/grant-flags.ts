/** Flags of `pen allow` and `pen deny` that make a rule temporary. */
import { auditDirectory } from '../../audit/directory.ts'
import { runningRuns } from '../../audit/running.ts'
import { PenError } from '../../base/error.ts'
import { parseMillis, showMillis } from '../../base/quantity.ts'
import { addGrants, type GrantOrder, removeGrants } from '../../config/grants/network-grants.ts'
import type { Project } from '../../config/project.ts'
import type { AllowRule, DenyRule } from '../../policy/network/net-rule.ts'
import { defineFlags, type FlagValues } from './flag-spec.ts'

export const lifeFlags = defineFlags({
  once: { kind: 'boolean', about: 'for one connection, within ten minutes (or --for)' },
  for: { kind: 'duration', value: 'DURATION', about: 'for this time, for example 10m' },
  session: { kind: 'boolean', about: 'until the running sandbox stops' },
})

type Life = FlagValues<typeof lifeFlags>

/** An unused one-time rule expires, so that a later, unrelated connection cannot use it. */
const ONCE_WITHIN = parseMillis('10m')

/** Writes a temporary rule and returns its lifetime as text. Undefined if no flag asks for one. */
export async function grantTemporarily(
  project: Project,
  life: Life,
  order: Pick<GrantOrder, 'effect' | 'by'> & { readonly rules: readonly (AllowRule | DenyRule)[] },
): Promise<string | undefined> {
  const { once, session, for: ms } = life
  if (!once && !session && ms === undefined) return undefined
  if (session && (once || ms !== undefined))
    throw new PenError('USAGE', {
      what: '--session cannot be combined with --once or --for',
      hint: 'remove one of them',
    })
  const running = runningRuns(auditDirectory(project.stateDir))
  await removeGrants(project.stateDir, ({ run }) => run !== undefined && !running.includes(run))
  if (session && running.length === 0)
    throw new PenError('STATE', {
      what: 'the sandbox of this project is not running',
      at: '--session',
      hint: '--for 1h instead, or no flag for a permanent rule',
    })
  const within = ms ?? ONCE_WITHIN
  const until = session ? undefined : new Date(Date.now() + within)
  const runs = session ? running : [undefined]
  addGrants(
    project.stateDir,
    order.rules.flatMap(rule => runs.map(run => ({ ...order, rule, once, run, until }))),
  )
  if (session)
    return running.length === 1
      ? 'until the sandbox stops'
      : `until the ${running.length} running sandboxes stop`
  return once ? `for one connection, within ${showMillis(within)}` : `for ${showMillis(within)}`
}
