/** The policy flags of every verb that starts or shows a sandbox. The user is trusted, so they can grant. */
import { PenError } from '../../base/error.ts'
import { resolve } from '../../base/posix-path.ts'
import { showMillis } from '../../base/quantity.ts'
import type { Project } from '../../config/project.ts'
import { isWithin } from '../../policy/files/path.ts'
import { parseAllowRule } from '../../policy/network/endpoint.ts'
import { listOf } from '../../policy/network/net-rule.ts'
import { everySuffixIsPublic } from '../../policy/network/net-target.ts'
import { defineFlags, type FlagValues } from './flag-spec.ts'
import { GAP_NAMES } from './gap-names.ts'

export const policyFlags = defineFlags({
  profile: {
    kind: 'choice',
    choices: ['strict', 'coding', 'dev'],
    about: 'built-in policy to start from',
  },
  isolation: {
    kind: 'choice',
    choices: ['auto', 'process', 'container', 'gvisor', 'vm', 'soft'],
    about: 'minimum isolation; never falls back to a weaker one',
  },
  backend: {
    kind: 'choice',
    choices: ['process', 'podman', 'docker', 'vm', 'apple', 'soft', 'kubernetes'],
    about: 'use this backend',
  },
  review: { kind: 'boolean', about: 'keep the project as it is until you accept the changes; see pen diff' },
  read: { kind: 'list', value: 'PATH', about: 'allow reading this path' },
  write: { kind: 'list', value: 'PATH', about: 'allow reading and writing this path' },
  deny: { kind: 'list', value: 'PATH', about: 'hide this path or pattern' },
  allow: { kind: 'list', value: 'HOST:PORT', about: 'allow connections to this host and port' },
  group: { kind: 'list', value: 'GROUP', about: 'allow a named set of hosts; see pen groups' },
  ask: { kind: 'boolean', about: 'ask before each connection that no rule covers; answer in pen watch' },
  env: { kind: 'list', value: 'NAME[=VALUE]', about: "set a variable, or pass the host's value" },
  'expose-key': {
    kind: 'list',
    value: 'KEY',
    about: 'pass this secret itself into the sandbox, not a placeholder',
  },
  limit: {
    kind: 'list',
    value: 'KEY=VALUE',
    about: 'set a limit: cpus, memory, pids, disk, output, files or wall',
  },
  wall: { kind: 'duration', value: 'TIME', about: 'time limit for the whole run, for example 90s or 2h' },
  offline: { kind: 'boolean', about: 'no network, even if the config allows it' },
  'accept-gap': {
    kind: 'list',
    value: 'NAME',
    about: 'run without the named protection',
    known: GAP_NAMES,
  },
  'allow-user-expansion': { kind: 'boolean', about: 'let agent-permissions.json also add permissions' },
})

export type PolicyFlags = FlagValues<typeof policyFlags>

/** What a policy is loaded with. */
export const loadOptions = (flags: PolicyFlags, project: Project) => ({
  flags: flagDocument(flags, project),
  offline: flags.offline,
  allowUserExpansion: flags['allow-user-expansion'],
})

/** The flags except `--offline` as a config document, so that one parser validates both. */
export function flagDocument(flags: PolicyFlags, project: Project): object {
  refuseContradictions(flags)
  const wall = flags.wall === undefined ? [] : [`wall=${showMillis(flags.wall)}`]
  return withoutEmpty({
    profile: flags.profile,
    isolation: flags.isolation,
    backend: flags.backend,
    workspace: flags.review ? 'review' : undefined,
    files: withoutEmpty({
      read: flags.read.map(path => fromCwd(path, project)),
      write: flags.write.map(path => fromCwd(path, project)),
      deny: flags.deny.map(path => patternFromCwd(path, project)),
    }),
    network: withoutEmpty({
      ...endpoints(flags.allow),
      groups: flags.group,
      ask: flags.ask ? 'hold' : undefined,
    }),
    limits: limitEntries([...flags.limit, ...wall]),
    env: Object.fromEntries([...flags.env, ...flags['expose-key']].map(envEntry)),
    acceptGaps: flags['accept-gap'],
  })
}

/** Without flags that were not given. */
const withoutEmpty = (document: Readonly<Record<string, string | object | undefined>>): object =>
  Object.fromEntries(
    Object.entries(document).filter(
      ([, value]) => typeof value === 'string' || Object.keys(value ?? {}).length > 0,
    ),
  )

/** Refuses contradicting flags instead of ignoring one of them. */
function refuseContradictions(flags: PolicyFlags): void {
  const { offline, allow, group, ask, env } = flags
  const granted = [
    ...allow.map(text => `--allow ${text}`),
    ...group.map(name => `--group ${name}`),
    ...(ask ? ['--ask'] : []),
  ]
  if (offline && granted.length > 0)
    throw new PenError('USAGE', {
      what: `--offline conflicts with ${granted.join(' ')}`,
      hint: 'remove one of them',
    })
  for (const name of [...env, ...flags['expose-key']])
    if (!name.includes('=') && process.env[name] === undefined)
      throw new PenError('USAGE', {
        what: `--env ${name} passes the host's ${name}, and ${name} is not set`,
        hint: `--env ${name}=VALUE, or export ${name} first`,
      })
}

/** A path on the command line is relative to the current directory, not to the workspace. */
export const fromCwd = (path: string, { cwd }: Pick<Project, 'cwd'>): string =>
  path.startsWith('/') || path.startsWith('~') ? path : resolve(cwd, path)

/** Patterns are anchored at the workspace. A pattern typed in a subdirectory means that subdirectory. */
function patternFromCwd(path: string, project: Project): string {
  const { cwd, world } = project
  if (path.startsWith('/') || path.startsWith('~') || path.startsWith('**/')) return path
  const below = isWithin(cwd, world.workspace) ? cwd.slice(world.workspace.length).replace(/^\//, '') : ''
  const plain = path.startsWith('./') ? path.slice(2) : path
  return below === '' ? plain : `${below}/${plain}`
}

/** `--allow` takes names and addresses. Each goes to its own list of the config. */
function endpoints(texts: readonly string[]): { http?: string[]; tcp?: string[] } {
  const out: { http?: string[]; tcp?: string[] } = {}
  for (const text of texts) {
    // Wildcards are checked later, against the list of public suffixes.
    const rule = text.startsWith('*.') ? undefined : parseAllowRule(text, everySuffixIsPublic)
    const list = rule?.ok ? listOf(rule.value) : 'http'
    out[list] = [...(out[list] ?? []), text]
  }
  return out
}

function envEntry(text: string): [string, string | { from: 'host' }] {
  const at = text.indexOf('=')
  return at < 0 ? [text, { from: 'host' }] : [text.slice(0, at), text.slice(at + 1)]
}

const NUMBERS = ['cpus', 'pids', 'files']

function limitEntries(texts: readonly string[]): Record<string, string | number> {
  const seen = new Set<string>()
  return Object.fromEntries(
    texts.map(text => {
      const at = text.indexOf('=')
      const key = text.slice(0, at)
      if (seen.has(key))
        throw new PenError('USAGE', {
          what: `limit ${key} is given twice`,
          hint: 'remove one (--wall sets limit wall)',
        })
      seen.add(key)
      const value = text.slice(at + 1)
      if (at < 1 || value === '')
        throw new PenError('USAGE', {
          what: `--limit ${text} is not KEY=VALUE`,
          hint: '--limit memory=2GiB',
        })
      if (!NUMBERS.includes(key)) return [key, value]
      if (!/^[0-9]+(\.[0-9]+)?$/.test(value))
        throw new PenError('USAGE', {
          what: `--limit ${key} needs a number, not "${value}"`,
          hint: `--limit ${key}=2`,
        })
      return [key, Number(value)]
    }),
  )
}
