/** Rules that users make with `pen allow`, `pen deny` and `pen watch`: permanent, or with the flags here temporary. */
import { auditDirectory } from '../../audit/directory.ts'
import { editAndWait } from '../../audit/edit-and-wait.ts'
import { runningRuns } from '../../audit/running.ts'
import { PenError } from '../../base/error.ts'
import { parseMillis, showMillis } from '../../base/quantity.ts'
import { addToLists, editLiveConfig } from '../../config/edit.ts'
import { addGrants, type GrantOrder, removeGrants } from '../../config/grants/network-grants.ts'
import { type Project, stateDirectories } from '../../config/project.ts'
import { publicSuffixTest } from '../../config/public-suffix.ts'
import { parseAllowRule, parseDenyRule } from '../../policy/network/endpoint.ts'
import { type DenyRule, listOf, printRule } from '../../policy/network/net-rule.ts'
import type { Parsed } from '../../policy/source.ts'
import { defineFlags, type FlagValues } from './flag-spec.ts'

type Effect = GrantOrder['effect']

/** Of all sandboxes of the project: a rule is for each of them. */
export const auditDirectories = (project: Project): readonly string[] =>
  stateDirectories(project).map(auditDirectory)

/** Parses the hosts and addresses that users type. */
export async function parseRules(effect: Effect, texts: readonly string[]): Promise<DenyRule[]> {
  if (texts.length === 0)
    throw new PenError('USAGE', {
      what: 'no host given',
      hint: 'name one, for example registry.example.com:443',
    })
  const isPublicSuffix = await publicSuffixTest(texts)
  return texts.map(text => {
    const rule: Parsed<DenyRule> = (effect === 'allow' ? parseAllowRule : parseDenyRule)(text, isPublicSuffix)
    if (rule.ok) return rule.value
    throw new PenError('HOST_SYNTAX', {
      what: `"${text}": ${rule.why}`,
      hint: rule.fix ?? 'write it like registry.example.com:443',
    })
  })
}

/** Adds permanent rules to the live config. */
export const addRules = (project: Project, effect: Effect, rules: readonly DenyRule[]): Promise<boolean> =>
  editLiveConfig(project, config =>
    rules.reduce(
      (edited, rule) =>
        addToLists(edited, { [effect === 'deny' ? 'deny' : listOf(rule)]: [printRule(rule)] }),
      config,
    ),
  )

export const lifeFlags = defineFlags({
  once: { kind: 'boolean', about: 'for one connection, within ten minutes (or --for)' },
  for: { kind: 'duration', value: 'DURATION', about: 'for this time, for example 10m' },
  session: { kind: 'boolean', about: 'until the running sandbox stops' },
})

type Life = FlagValues<typeof lifeFlags>

/**
 * Writes the rules, temporary if a flag says so, and waits until running sandboxes apply them. Returns the lifetime of
 * temporary rules as text.
 */
export const writeRules = (
  project: Project,
  effect: Effect,
  rules: readonly DenyRule[],
  life: Life,
): Promise<string | undefined> =>
  editAndWait(auditDirectories(project), async () => {
    if (life.once || life.session || life.for !== undefined)
      return await addTemporaryRules(project, effect, rules, life)
    await addRules(project, effect, rules)
    return undefined
  })

/** An unused one-time rule expires, so that a later, unrelated connection cannot use it. */
const ONCE_WITHIN = parseMillis('10m')

async function addTemporaryRules(
  project: Project,
  effect: Effect,
  rules: readonly DenyRule[],
  { once, session, for: ms }: Life,
): Promise<string> {
  if (session && (once || ms !== undefined))
    throw new PenError('USAGE', {
      what: '--session cannot be combined with --once or --for',
      hint: 'remove one of them',
    })
  if (once && rules.some(({ request }) => request !== undefined))
    throw new PenError('USAGE', {
      what: '--once is for one connection, and a rule about requests judges each request',
      hint: '--for 10m instead',
    })
  const running = auditDirectories(project).flatMap(runningRuns)
  await removeGrants(project.shared.stateDir, ({ run }) => run !== undefined && !running.includes(run))
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
    project.shared.stateDir,
    rules.flatMap(rule => runs.map(run => ({ effect, rule, by: `pen ${effect}`, once, run, until }))),
  )
  if (session)
    return running.length === 1
      ? 'until the sandbox stops'
      : `until the ${running.length} running sandboxes stop`
  return once ? `for one connection, within ${showMillis(within)}` : `for ${showMillis(within)}`
}
