/** Temporary grants as a policy layer. They are the user's own and override the user's other layers. */
import type { AllowRule, DenyRule } from '../../policy/network/net-rule.ts'
import { listOf } from '../../policy/network/net-rule.ts'
import type { Layer, List } from '../../policy/settings.ts'
import type { Source, Sourced } from '../../policy/source.ts'
import { type Grant, readGrants } from './network-grants.ts'

/**
 * Which session grants count: those of one run, or none while a run starts (`start`). For display all of them count, each with
 * its expiry (`shown`). A question about permanent rules counts none (`none`).
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
    // A question does not use up a grant, so it is shown as an ordinary rule.
    temporary: { until: until?.getTime(), once: once && view !== 'shown' ? file : undefined },
  }
}
