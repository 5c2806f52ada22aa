/** Saves the user's answer to a waiting connection, in the files that `pen allow` and `pen deny` write. */
import { addGrants } from '../../config/grants/network-grants.ts'
import type { Project } from '../../config/project.ts'
import { ruleWord } from '../../policy/network/net-rule.ts'
import { addRules, parseRules } from '../frame/network-rules.ts'
import type { HeldTarget } from './state.ts'

export type Answer = 'once' | 'session' | 'always' | 'not now' | 'never'

/** Long enough for the waiting connection, short enough to miss later ones. */
const NOT_NOW_MS = 2000
const ONCE_SLACK_MS = 2000

/** Returns the message to show. Parses the target again as a rule, because the sandbox chose the name. */
export async function answer(project: Project, held: HeldTarget, given: Answer): Promise<string> {
  const { run, target } = held
  const effect = given === 'not now' || given === 'never' ? 'deny' : 'allow'
  const done = effect === 'deny' ? 'denied' : 'allowed'
  const rules = await parseRules(effect, [target])
  if (given === 'always' || given === 'never') {
    await addRules(project, effect, rules)
    return `${done} permanently: ${target} (undo: pen forget ${rules.map(ruleWord).join(' ')})`
  }
  // Keep-alive has no single request: the rule for a request expires with the question.
  const isRequest = rules.some(({ request }) => request !== undefined)
  const end = given === 'once' ? held.until + ONCE_SLACK_MS : Date.now() + NOT_NOW_MS
  const until = given === 'session' ? undefined : new Date(end)
  addGrants(
    project.shared.stateDir,
    rules.map(rule => ({ effect, rule, by: 'pen watch', once: given === 'once' && !isRequest, run, until })),
  )
  return `${done} ${given === 'session' ? 'until the sandbox stops' : 'once'}: ${target}`
}
