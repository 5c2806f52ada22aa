/** Temporary grants as a layer of the policy: the user's own, and the last word among the user's. */
import type { AllowRule, DenyRule } from '../../policy/network/net-rule.ts'
import { listOf } from '../../policy/network/net-rule.ts'
import type { Layer, List } from '../../policy/settings.ts'
import type { Source, Sourced } from '../../policy/source.ts'
import { type Grant, readGrants } from './network-grants.ts'

/**
 * Whose session grants count: those of one run; of none, while it is being started; or, for a person who asks what is in
 * force, all of them, each with its end told. Whoever asks what lasts counts none.
 */
export type GrantView = { readonly run: string } | 'start' | 'shown' | 'none'

export async function grantLayer(stateDir: string, view: GrantView): Promise<Layer[]> {
  if (view === 'none') return []
  const counted = (await readGrants(stateDir)).filter(
    ({ run }) => view === 'shown' || run === undefined || (view !== 'start' && run === view.run),
  )
  if (counted.length === 0) return []
  const allow = counted.filter(isAllow)
  const items = <T>(grants: readonly (Grant & { rule: T })[]): List<T> => ({
    clear: false,
    items: grants.map((grant): Sourced<T> => ({ rule: grant.rule, source: sourceOf(grant, view) })),
  })
  return [
    {
      name: 'temporary grants',
      trust: 'user',
      settings: {
        'network.http': items(allow.filter(({ rule }) => listOf(rule) === 'http')),
        'network.tcp': items(allow.filter(({ rule }) => listOf(rule) === 'tcp')),
        'network.deny': items<DenyRule>(counted.filter(({ effect }) => effect === 'deny')),
      },
    },
  ]
}

const isAllow = (grant: Grant): grant is Grant & { rule: AllowRule } => grant.effect === 'allow'

function sourceOf({ by, once, run, until, file }: Grant, view: GrantView): Source {
  const life = [
    ...(once ? ['one connection'] : []),
    ...(run === undefined ? [] : [`run ${run}`]),
    ...(until === undefined ? [] : [`until ${until.toISOString().slice(0, 19)}Z`]),
  ]
  return {
    layer: `${by}, ${life.join(', ')}`,
    place: undefined,
    // Whoever only asks uses nothing up: to them it is a rule like any other.
    temporary: { until: until?.getTime(), once: once && view !== 'shown' ? file : undefined },
  }
}
