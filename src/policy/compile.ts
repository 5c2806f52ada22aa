/** Compiles merged settings into a policy without optional fields. A setting that no layer names keeps its zero value, which denies. */
import type { Millis } from '../base/quantity.ts'
import type { HostPath } from './files/path.ts'
import type { Host } from './network/host.ts'
import type { AllowRule } from './network/net-rule.ts'
import { compileNetwork } from './network/network.ts'
import { refuseSameName, type Secret, variablesOf } from './network/secret.ts'
import { checkUnopened, isUnopenedSignIn } from './network/unopened.ts'
import { denyAll, type NetCeiling, type PackageSources, type Policy } from './policy.ts'
import type { List, PathGrant, SettingKey, Settings } from './settings.ts'
import type { Setting, Source, Sourced } from './source.ts'

/** The rules of each group that the settings name; `config/groups.ts` looks them up on the host. */
export type GroupRules = ReadonlyMap<
  string,
  {
    readonly rules: readonly Sourced<AllowRule>[]
    readonly mirrors: readonly Host[]
    readonly told: PackageSources
  }
>

export function compile(
  settings: Settings,
  workspace: HostPath,
  groupRules: GroupRules,
  ceilings: readonly NetCeiling[] = [],
): Policy {
  const zero = denyAll(workspace)
  const value = <T>(setting: Setting<T> | undefined, otherwise: T): T =>
    setting === undefined ? otherwise : setting.value
  const items = <T>(list: List<T> | undefined): readonly Sourced<T>[] => list?.items ?? []
  const rules = <T>(list: List<T> | undefined): readonly T[] => items(list).map(item => item.rule)
  const section = <S extends 'exec' | 'limits' | 'git' | 'vm'>(name: S): Policy[S] => {
    const values = Object.entries(zero[name]).map(([key, otherwise]) => {
      const setting = settings[`${name}.${key}` as SettingKey] as Setting<unknown> | undefined
      return [key, value(setting, otherwise)]
    })
    return Object.fromEntries(values)
  }

  const mode = value(settings['network.mode'], zero.network.mode)
  const offline = value(settings['network.offline'], zero.network.offline)
  const groups = [...new Set(rules(settings['network.groups']))]
  const known = groups.flatMap(group => groupRules.get(group) ?? [])
  const allowed = [
    ...items(settings['network.http']),
    ...items(settings['network.tcp']),
    ...known.flatMap(({ rules }) => rules),
  ]
  const denied = items(settings['network.deny'])
  const allow = allowed.filter(isLasting)
  const deny = denied.filter(isLasting)
  const exec = section('exec')
  const mirrors = known.flatMap(group => group.mirrors)
  const secrets = items(settings.secrets).filter(
    secret => !isExposed(secret, settings.env) && !isUnopenedSignIn(secret, allow),
  )
  refuseSameName(secrets)
  checkUnopened({ allow, deny, secrets })

  return {
    profile: value(settings.profile, zero.profile),
    isolation: value(settings.isolation, zero.isolation),
    backend: value<Policy['backend']>(settings.backend, zero.backend),
    workspace,
    workspaceMode: value(settings.workspace, zero.workspaceMode),
    files: {
      read: unique([...items(settings['files.read']), ...items(settings['files.write'])]),
      write: items(settings['files.write']),
      deny: items(settings['files.deny']),
      protect: items(settings['files.protect']),
    },
    network: {
      mode,
      offline,
      ask: value(settings['network.ask'], zero.network.ask),
      hold: value(settings['network.hold'], zero.network.hold),
      idle: value(settings['network.idle'], zero.network.idle),
      upstreamProxy: value(settings['network.upstreamProxy'], zero.network.upstreamProxy),
      groups,
      allow,
      deny,
      once: { allow: allowed.filter(isOnce), deny: denied.filter(isOnce) },
      ceilings,
      secrets,
      index: compileNetwork({ mode, offline, allow, deny, mirrors, secrets }),
    },
    // The ceiling also caps the default timeout.
    exec: { ...exec, timeout: Math.min(exec.timeout, exec.ceiling) as Millis },
    limits: section('limits'),
    env: settings.env ?? zero.env,
    packages: {
      files: known.flatMap(({ told }) => told.files),
      env: known.flatMap(({ told }) => told.env),
    },
    git: section('git'),
    vm: section('vm'),
    mounts: items(settings.mounts),
    image: value<Policy['image']>(settings.image, zero.image),
    tools: {
      shell: value(settings['tools.shell'], zero.tools.shell),
      allow: settings['tools.allow'] === undefined ? 'shown' : rules(settings['tools.allow']),
      exec: value(settings['tools.exec'], zero.tools.exec),
    },
    user: value(settings.user, zero.user),
    runtime: value(settings.runtime, zero.runtime),
    sshAgent: {
      keys: rules(settings['ssh.agent.keys']),
      hosts: rules(settings['ssh.agent.hosts']),
      sign: rules(settings['ssh.agent.sign']),
    },
    acceptGaps: rules(settings.acceptGaps),
    ports: items(settings.ports),
    sources: sourcesOf(settings),
  }
}

/** A variable on the command line is stronger than a secret of the same name in a preset or config. */
const isExposed = ({ rule, source }: Sourced<Secret>, env: Settings['env']): boolean => {
  const layers = variablesOf(rule, rule.name).map(variable => env?.get(variable)?.source.layer)
  return layers.includes(COMMAND_LINE) && source.layer !== COMMAND_LINE
}

export const COMMAND_LINE = 'command line'

const isOnce = ({ source }: Sourced<unknown>): boolean => source.temporary?.once !== undefined
const isLasting = (item: Sourced<unknown>): boolean => !isOnce(item)

/** A path that is both read and written is listed once, at its most specific. */
function unique(grants: readonly Sourced<PathGrant>[]): readonly Sourced<PathGrant>[] {
  const out = new Map<string, Sourced<PathGrant>>()
  for (const grant of grants) {
    const known = out.get(grant.rule.path)
    if (known === undefined || grant.rule.rank > known.rule.rank) out.set(grant.rule.path, grant)
  }
  return [...out.values()]
}

function sourcesOf(settings: Settings): ReadonlyMap<SettingKey, Source> {
  const out = new Map<SettingKey, Source>()
  for (const [key, setting] of Object.entries(settings))
    if ('value' in setting) out.set(key as SettingKey, (setting as Setting<unknown>).source)
  // All entries of a tools list come from one layer.
  const [tool] = settings['tools.allow']?.items ?? []
  if (tool !== undefined) out.set('tools.allow', tool.source)
  return out
}
