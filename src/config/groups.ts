import { PenError, showPlace } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { parseHttpRule } from '../policy/network/endpoint.ts'
import { GROUPS, type Group, isGroupName, type PackageManager } from '../policy/network/groups.ts'
import type { Host } from '../policy/network/host.ts'
import { type AllowRule, printRule } from '../policy/network/net-rule.ts'
import { everySuffixIsPublic } from '../policy/network/net-target.ts'
import type { PackageSources } from '../policy/policy.ts'
import type { Sourced } from '../policy/source.ts'
import { aptSources } from './registries/apt-sources.ts'
import type { AskContext } from './registries/ask-tool.ts'
import { cargoRegistries } from './registries/cargo-registries.ts'
import { goProxies } from './registries/go-proxies.ts'
import { imageMirrors } from './registries/image-mirrors.ts'
import { type Mirror, mirrorRule } from './registries/mirror.ts'
import { npmRegistries } from './registries/npm-registries.ts'
import { packageSources } from './registries/package-sources.ts'
import { pipIndexes } from './registries/pip-indexes.ts'

export interface GroupContext extends AskContext {
  /** Configuration in these directories is ignored, because the agent can write there. */
  readonly writable: readonly string[]
  /** The directory of the system's configuration. `/etc` except in tests. */
  readonly etc?: string
}

export interface ResolvedGroup {
  readonly rules: readonly Sourced<AllowRule>[]
  /** Names in the rules that come from the user's or system's configuration. These may resolve to a private address. */
  readonly mirrors: readonly Host[]
  /** Files and variables that point a package manager inside at these sources. */
  readonly told: PackageSources
}

/** The rules of a group on this machine. */
export async function resolveGroup(name: string, context: GroupContext): Promise<ResolvedGroup> {
  if (!isGroupName(name))
    throw new PenError('GROUP', {
      what: `there is no group "${printable(name, 64)}"`,
      hint: `the groups are ${Object.keys(GROUPS).join(', ')}`,
    })
  const group: Group = GROUPS[name]
  const layer = `group ${name} v${group.version}`
  const rules = new Map<string, Sourced<AllowRule>>()
  for (const { rule, reason } of group.hosts ?? [])
    rules.set(rule, { rule: checkedRule(rule), source: { layer, place: undefined, note: reason } })
  const mirrors = group.follows === undefined ? [] : await FOLLOW[group.follows](context)
  for (const mirror of mirrors) {
    const whole = mirrorRule(mirror)
    for (const rule of whole === undefined ? [] : narrowed(whole, group.requests, mirror))
      if (!rules.has(printRule(rule))) rules.set(printRule(rule), { rule, source: sourceOf(layer, mirror) })
  }
  const found = [...rules.values()]
  // A tool's built-in default is a public service. Only a configured mirror may resolve to a private address.
  const named = found.filter(({ source }) => source.place !== undefined)
  return {
    rules: found,
    mirrors: [...new Set(named.flatMap(({ rule }) => (rule.kind === 'name' ? [rule.host] : [])))],
    told: packageSources(group.follows, mirrors),
  }
}

/** The rule of a source, or one for each kind of request that the group allows. */
function narrowed(rule: AllowRule, requests: Group['requests'], { at }: Mirror): AllowRule[] {
  if (requests === undefined) return [rule]
  if (rule.kind !== 'name')
    throw new PenError('GROUP', {
      what: `the package source ${printRule(rule)} has no name, so single requests cannot be judged`,
      at,
      hint: 'use the group without ":install"',
    })
  return requests.map(text => {
    const [methods = '', path = ''] = text.split(' ')
    return checkedRule(`${methods} ${printRule(rule)}${path}`)
  })
}

const FOLLOW: Readonly<Record<PackageManager, (context: GroupContext) => Mirror[] | Promise<Mirror[]>>> = {
  npm: npmRegistries,
  pip: pipIndexes,
  cargo: cargoRegistries,
  go: goProxies,
  apt: aptSources,
  containers: imageMirrors,
}

function sourceOf(layer: string, { at }: Mirror): Sourced<AllowRule>['source'] {
  return { layer, place: typeof at === 'string' ? undefined : at, note: `named in ${showPlace(at)}` }
}

function checkedRule(text: string): AllowRule {
  const rule = parseHttpRule(text, everySuffixIsPublic)
  if (rule.ok) return rule.value
  throw new PenError('INTERNAL', { what: `the group entry "${text}" is malformed: ${rule.why}` })
}
