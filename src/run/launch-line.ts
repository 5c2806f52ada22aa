/** The line before a run: backend, network, and which layers changed the policy. */
import type { Plan } from '../plan/plan.ts'
import { projectDocument, showExpansion } from '../plan/show.ts'
import type { Merged } from '../policy/merge.ts'

/** All text comes from the policy, whose names were checked when it was parsed. */
export function launchLines(plan: Plan, merged: Merged, accepted: readonly string[]): string[] {
  const network =
    plan.network.kind === 'none' ? `no network (${plan.network.why})` : `network by ${plan.network.kind}`
  const project = {
    absent: undefined,
    restricted: 'agent-permissions.json restricted only',
    expanded: 'agent-permissions.json expanded the policy',
  }[projectDocument(merged)]
  const gaps = plan.gaps.filter(gap => accepted.includes(gap.name)).map(gap => gap.name)
  const parts = [
    `backend ${plan.backend}, isolation ${plan.isolation}`,
    network,
    ...(plan.layer === undefined ? [] : ['review: the project stays as it is until pen accept']),
    ...(project === undefined ? [] : [project]),
    ...(plan.weaker.length === 0 ? [] : [`weaker: ${plan.weaker.map(({ name }) => name).join(', ')}`]),
    ...(gaps.length === 0 ? [] : [`accepted gaps: ${gaps.join(', ')}`]),
  ]
  return [
    ...(plan.soft ? [BANNER] : []),
    parts.join('; '),
    ...merged.expanded.map(showExpansion),
    ...plan.notes.map(note => `note: ${note}`),
  ]
}

/** Printed before every soft run, and by `pen status`. */
export const BANNER =
  'SOFT_SANDBOX=true: no kernel confines this run; a program that does not keep to the rules can read, write and reach whatever you can'

/** Printed at a terminal, on the first run, and whenever a gap was accepted or the project has a document. */
export const mustBeSaid = (
  merged: Merged,
  accepted: readonly string[],
  firstRun: boolean,
  atTerminal: boolean,
): boolean => firstRun || atTerminal || accepted.length > 0 || projectDocument(merged) !== 'absent'
