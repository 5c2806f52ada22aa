/** The flags that shape a policy, shared by every verb that starts or shows a sandbox. They are the user's: they may grant. */
import { PenError } from '../../base/error.ts'
import { resolve } from '../../base/posix-path.ts'
import { showMillis } from '../../base/quantity.ts'
import type { Project } from '../../config/project.ts'
import { isWithin } from '../../policy/files/path.ts'
import { parseAllowRule } from '../../policy/network/endpoint.ts'
import { listOf } from '../../policy/network/net-rule.ts'
import { everySuffixIsPublic } from '../../policy/network/net-target.ts'
import { defineFlags, type FlagValues } from './flag-spec.ts'

export const policyFlags = defineFlags({
  profile: {
    kind: 'choice',
    choices: ['strict', 'coding', 'dev'],
    about: 'the built-in policy to start from',
  },
  isolation: {
    kind: 'choice',
    choices: ['auto', 'process', 'container', 'gvisor', 'vm', 'soft'],
    about: 'how strong the wall must be; nothing weaker is taken',
  },
  backend: {
    kind: 'choice',
    choices: ['process', 'podman', 'docker', 'vm', 'apple', 'soft', 'kubernetes'],
    about: 'one engine by name',
  },
  read: { kind: 'list', value: 'PATH', about: 'let the sandbox read this path' },
  write: { kind: 'list', value: 'PATH', about: 'let the sandbox read and write this path' },
  deny: { kind: 'list', value: 'PATH', about: 'hide this path or pattern' },
  allow: { kind: 'list', value: 'HOST:PORT', about: 'let the sandbox connect there' },
  group: { kind: 'list', value: 'GROUP', about: 'let the sandbox connect to a set of hosts: see pen groups' },
  ask: { kind: 'boolean', about: 'hold connections that no rule names until you answer: see pen watch' },
  env: { kind: 'list', value: 'NAME[=VALUE]', about: "set a variable, or pass on the host's" },
  limit: { kind: 'list', value: 'KEY=VALUE', about: 'cpus, memory, pids, disk, output, files or wall' },
  wall: { kind: 'duration', value: 'TIME', about: 'end everything after this long, as 90s or 2h' },
  offline: { kind: 'boolean', about: 'no network, whatever else grants it' },
  'accept-gap': {
    kind: 'list',
    value: 'NAME',
    about: 'accept what this machine cannot keep, by name',
    known: async () => (await import('./gap-names.ts')).gapNames(),
  },
  'allow-user-expansion': { kind: 'boolean', about: 'let agent-permissions.json add, not only take away' },
})

export type PolicyFlags = FlagValues<typeof policyFlags>

/** What the flags say, but for `--offline`, in the shape of a config document, so that one parser checks both. */
export function flagDocument(flags: PolicyFlags, project: Project): object {
  refuseContradictions(flags)
  const files = {
    ...some(
      'read',
      flags.read.map(path => fromCwd(path, project)),
    ),
    ...some(
      'write',
      flags.write.map(path => fromCwd(path, project)),
    ),
    ...some(
      'deny',
      flags.deny.map(path => patternFromCwd(path, project)),
    ),
  }
  const network = {
    ...endpoints(flags.allow),
    ...some('groups', flags.group),
    ...(flags.ask && { ask: 'hold' }),
  }
  const wall = flags.wall === undefined ? [] : [`wall=${showMillis(flags.wall)}`]
  const limits = limitEntries([...flags.limit, ...wall])
  return {
    ...given('profile', flags.profile),
    ...given('isolation', flags.isolation),
    ...given('backend', flags.backend),
    ...section('files', files),
    ...section('network', network),
    ...section('limits', limits),
    ...section('env', Object.fromEntries(flags.env.map(envEntry))),
    ...some('acceptGaps', flags['accept-gap']),
  }
}

/** Of two flags that cannot both hold, neither is dropped in silence. */
function refuseContradictions({ offline, allow, group, ask, env }: PolicyFlags): void {
  const granted = [
    ...allow.map(text => `--allow ${text}`),
    ...group.map(name => `--group ${name}`),
    ...(ask ? ['--ask'] : []),
  ]
  if (offline && granted.length > 0)
    throw new PenError('USAGE', {
      what: `--offline takes all network away, and ${granted.join(' ')} asks for some`,
      hint: `leave out --offline, or ${granted.join(' ')}`,
    })
  for (const name of env)
    if (!name.includes('=') && process.env[name] === undefined)
      throw new PenError('USAGE', {
        what: `--env ${name} passes on your variable, and ${name} is not set here`,
        hint: `set it with export ${name}=…, write --env ${name}=VALUE, or leave the flag out`,
      })
}

const given = (key: string, value: string | undefined) => (value === undefined ? {} : { [key]: value })
const some = (key: string, list: readonly string[]) => (list.length === 0 ? {} : { [key]: list })
const section = (key: string, value: object) => (Object.keys(value).length === 0 ? {} : { [key]: value })

/** On the command line a path is relative to where the user stands, and naming it there is explicit. */
const fromCwd = (path: string, project: Project): string =>
  path.startsWith('/') || path.startsWith('~') ? path : resolve(project.cwd, path)

/** Patterns are anchored at the workspace; one typed in a directory below it means that directory. */
function patternFromCwd(path: string, project: Project): string {
  const { cwd, world } = project
  if (path.startsWith('/') || path.startsWith('~') || path.startsWith('**/')) return path
  const below = isWithin(cwd, world.workspace) ? cwd.slice(world.workspace.length).replace(/^\//, '') : ''
  const plain = path.startsWith('./') ? path.slice(2) : path
  return below === '' ? plain : `${below}/${plain}`
}

/** `--allow` takes names and addresses alike; each goes to the list where it belongs. */
function endpoints(texts: readonly string[]): { http?: string[]; tcp?: string[] } {
  const out: { http?: string[]; tcp?: string[] } = {}
  for (const text of texts) {
    // A star is only judged later, with the list of public suffixes; until then it is a name like any other.
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
          what: `the limit ${key} is given twice`,
          hint: 'give each limit once; --wall is --limit wall',
        })
      seen.add(key)
      const value = text.slice(at + 1)
      if (at < 1 || value === '')
        throw new PenError('USAGE', {
          what: `--limit ${text} is not KEY=VALUE`,
          hint: 'for example --limit memory=2GiB',
        })
      if (!NUMBERS.includes(key)) return [key, value]
      if (!/^[0-9]+(\.[0-9]+)?$/.test(value))
        throw new PenError('USAGE', {
          what: `--limit ${key} needs a number, not "${value}"`,
          hint: `for example --limit ${key}=2`,
        })
      return [key, Number(value)]
    }),
  )
}
