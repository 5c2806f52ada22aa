/**
 * Configuration for package managers inside: the source addresses from the user's configuration, never the credentials. The
 * project's own settings and variables of the policy override it.
 */
import type { PackageManager } from '../../policy/network/groups.ts'
import type { PackageSources } from '../../policy/policy.ts'
import { addressOf, type Mirror, mirrorRule } from './mirror.ts'

const NPMRC = '/etc/npmrc'
const PIP_CONF = '/etc/pip.conf'
const NOTHING: PackageSources = { files: [], env: [] }
const HEAD = '# by pen, from the configuration on the host, without its tokens'

interface Named {
  readonly setting: string
  readonly at: Mirror['at']
  /** The address without credentials. */
  readonly address: string
}

export function packageSources(
  manager: PackageManager | undefined,
  mirrors: readonly Mirror[],
): PackageSources {
  const named = mirrors.flatMap((mirror): Named[] => {
    if (mirror.setting === undefined || mirrorRule(mirror) === undefined) return []
    const address = addressOf(mirror)
    return address === undefined ? [] : [{ setting: mirror.setting, at: mirror.at, address }]
  })
  if (named.length === 0) return NOTHING
  switch (manager) {
    case 'npm':
      // npm reads only the global file that this variable names.
      return {
        files: [{ at: NPMRC, text: npmrc(named) }],
        env: [{ name: 'npm_config_globalconfig', value: NPMRC }],
      }
    case 'pip':
      return { files: [{ at: PIP_CONF, text: pipConf(named) }], env: [] }
    case 'go':
      // go has no system-wide file, so a variable is needed.
      return { files: [], env: [{ name: 'GOPROXY', value: named.map(({ address }) => address).join(',') }] }
    default:
      return NOTHING
  }
}

/** The user's file overrides the system's. */
function npmrc(named: readonly Named[]): string {
  const first = new Map<string, string>()
  for (const { setting, address } of named) if (!first.has(setting)) first.set(setting, address)
  return [HEAD, ...[...first].map(([setting, address]) => `${setting}=${address}`), ''].join('\n')
}

/** The last file that names a setting overrides all others. */
function pipConf(named: readonly Named[]): string {
  const of = (setting: string): string[] => {
    const all = named.filter(one => one.setting === setting)
    const last = fileOf(all.at(-1)?.at)
    return all.filter(({ at }) => fileOf(at) === last).map(({ address }) => address)
  }
  const index = of('index-url').slice(-1)
  const extra = of('extra-index-url')
  return [
    HEAD,
    '[global]',
    ...index.map(url => `index-url = ${url}`),
    ...(extra.length === 0 ? [] : ['extra-index-url =', ...extra.map(url => `    ${url}`)]),
    '',
  ].join('\n')
}

const fileOf = (at: Mirror['at'] | undefined): string | undefined => (typeof at === 'object' ? at.file : at)
