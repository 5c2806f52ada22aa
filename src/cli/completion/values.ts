/** Completions of values, by the placeholder in help. A test finds placeholders without a row. */
import { readFileGrants } from '../../config/grants/file-grants.ts'
import { findProject, namesOf } from '../../config/project.ts'
import { requestValue } from '../../control/client.ts'
import { HOOKED_AGENTS } from '../../hooks/agents.ts'
import { listSandboxes } from '../../lifecycle/list.ts'
import { GROUPS } from '../../policy/network/groups.ts'
import type { Limits } from '../../policy/policy.ts'
import { PRESETS } from '../../policy/presets.ts'
import { configSchema } from '../../policy/schema.ts'
import { listCheckpoints } from '../../review/checkpoint/checkpoint.ts'
import type { SandboxStatus } from '../../run/status.ts'
import type { FlagSpec } from '../frame/flag-spec.ts'
import type { VerbTable } from '../frame/verb.ts'
import { WHY } from '../render/checkpoints.ts'
import { NOTHING, type Offer, offer, words } from './candidate.ts'
import { grantedHosts, refusedHosts, ruledHosts, seenHosts, storedRuns } from './recent-hosts.ts'
import { SHELLS } from './scripts.ts'

export interface Context {
  readonly table: VerbTable
  readonly env: Readonly<Record<string, string | undefined>>
  /** The sandbox that the user named. */
  readonly name?: string | undefined
}

type Source = (current: string, context: Context) => Offer | Promise<Offer>

const PATHS: Source = () => ({ is: 'paths' })
const refused: Source = () => words(refusedHosts(), 'recently refused')
const configKey: Source = () => words(configKeys())
const groupNames: Source = () =>
  offer(Object.entries(GROUPS).map(([value, { reason }]) => ({ value, about: reason })))
const agentNames: Source = () =>
  offer(Object.entries(PRESETS).map(([value, { title }]) => ({ value, about: title })))

/** An unreadable grant does not hide the others. */
const ruled: Source = async () => {
  const granted = await grantedHosts().catch(() => [])
  return offer([
    ...ruledHosts().map(value => ({ value, about: 'in the live config' })),
    ...granted.map(value => ({ value, about: 'temporary' })),
  ])
}

const secretNames: Source = async () => {
  const { loadPolicy } = await import('../../config/load.ts')
  const load = { flags: {}, offline: true, allowUserExpansion: false }
  const { policy } = await loadPolicy(findProject(), load)
  return words(policy.network.secrets.map(({ rule }) => rule.name))
}

const sandboxes =
  (isWanted: (state: string) => boolean): Source =>
  async () => {
    const known = (await listSandboxes({ repair: false })).filter(({ state }) => isWanted(state))
    return offer(known.map(({ id, workspace = 'never started' }) => ({ value: id, about: workspace })))
  }
const checkpoints: Source = (_, { name }) =>
  offer(
    listCheckpoints(findProject(undefined, name).stateDir).map(one => ({
      value: one.name,
      about: WHY[one.why],
    })),
  )
const anySandbox = sandboxes(() => true)

const serversInside: Source = async () => {
  const asked = await requestValue(findProject().stateDir, 'status')
  return words(((asked?.value as Partial<SandboxStatus> | undefined)?.listening ?? []).map(String))
}
const sandboxNames: Source = () => words(namesOf(findProject().shared.stateDir))

/** Values of flags, by their placeholder in help. */
export const VALUES: Readonly<Record<string, Source>> = {
  PATH: PATHS,
  'HOST:PORT': refused,
  'NAME[=VALUE]': (_, { env }) => words(Object.keys(env).filter(name => /^[A-Za-z_]\w*$/.test(name))),
  NAME: (_, { env }) => words(Object.keys(env).filter(name => /^[A-Za-z_]\w*$/.test(name))),
  SANDBOX: sandboxNames,
  KEY: (_, { env }) => words(Object.keys(env).filter(name => /_(KEY|TOKEN|SECRET)$/.test(name))),
  FIELD: () => words(['authorization', 'x-api-key']),
  'KEY=VALUE': limitExamples,
  CHECKPOINT: checkpoints,
  GROUP: groupNames,
  ID: (_, { name }) => words(storedRuns(name), 'stored run'),
  // Positions in a file cannot be guessed.
  BYTE: () => NOTHING,
  BYTES: () => NOTHING,
  // The user copies the digest from another command's output.
  'sha256:…': () => NOTHING,
  // The user's own words.
  MESSAGE: () => NOTHING,
  BRANCH: () => NOTHING,
  COMMAND: () => NOTHING,
}

/** Positional arguments, by verb and name. */
export const WORDS: Readonly<Record<string, Source>> = {
  'ssh sandbox': sandboxNames,
  'allow target': refused,
  'deny target': () => words(seenHosts(), 'recently used'),
  'forget target': ruled,
  'stop id': sandboxes(state => state !== 'stopped'),
  'status id': anySandbox,
  'rm id': anySandbox,
  'policy explain subject': (current, context) =>
    (/^[./~]/.test(current) ? PATHS : refused)(current, context),
  'secret add name': (_, { env }) =>
    words(Object.keys(env).filter(name => /_(KEY|TOKEN|SECRET)$/.test(name))),
  'secret remove name': secretNames,
  'secret test name': secretNames,
  'config get key': configKey,
  'config set key': configKey,
  // Each key has its own kind of value. pen reports a wrong one with the right form.
  'config set value': () => NOTHING,
  'grant path': PATHS,
  'revoke path': (_, { name }) =>
    words(
      readFileGrants(findProject(undefined, name).stateDir).map(({ path }) => path),
      'granted',
    ),
  // Only the broker knows the host's files, and completion does not connect to it.
  'files ls path': PATHS,
  'files stat path': PATHS,
  'files cat path': PATHS,
  'files get path': PATHS,
  'files get to': PATHS,
  'files put from': PATHS,
  'files put path': PATHS,
  'groups name': groupNames,
  'diff path': PATHS,
  'accept path': PATHS,
  'discard path': PATHS,
  'checkpoint name': () => NOTHING,
  'rollback name': checkpoints,
  'compare first': sandboxNames,
  'compare second': sandboxNames,
  'agent name': agentNames,
  'hook agent': () => words(Object.keys(HOOKED_AGENTS)),
  'help verb': (_, { table }) => words(Object.keys(table).map(name => name.split(' ')[0] ?? name)),
  'forward port': serversInside,
  'open port': serversInside,
  'completion shell': () => words(SHELLS),
}

const DURATIONS = ['30s', '10m', '1h', '8h', '1d']

export function valueOffer(
  spec: Exclude<FlagSpec, { kind: 'boolean' }>,
  current: string,
  context: Context,
): Offer | Promise<Offer> {
  if (spec.kind === 'choice') return words(spec.choices)
  if (spec.kind === 'duration') return words(DURATIONS)
  if (spec.kind === 'list' && spec.known !== undefined) return words(spec.known)
  return VALUES[spec.value]?.(current, context) ?? NOTHING
}

interface Schema {
  readonly entries?: Readonly<Record<string, Schema>>
  readonly wrapped?: Schema
}

/** Every key of the config, objects and their parts, as `pen config get` and `pen config set` take it. */
function configKeys(schema = configSchema as unknown as Schema): string[] {
  if (schema.wrapped !== undefined) return configKeys(schema.wrapped)
  return Object.entries(schema.entries ?? {})
    .filter(([name]) => /^[a-z]\w*$/i.test(name))
    .flatMap(([name, part]) => [name, ...configKeys(part).map(key => `${name}.${key}`)])
}

/** Typed by the policy: a limit without a row does not compile. */
const LIMIT_EXAMPLES: Readonly<Record<keyof Limits, readonly string[]>> = {
  cpus: ['1', '2', '4'],
  memory: ['1GiB', '2GiB', '4GiB', '8GiB'],
  pids: ['512', '4096', '16384'],
  disk: ['1GiB', '10GiB', '50GiB'],
  output: ['100MiB', '1GiB'],
  files: ['1024', '4096'],
  wall: ['10m', '1h', '8h'],
}

/** First the keys, then a few values for the typed key. */
function limitExamples(current: string): Offer {
  const key = Object.keys(LIMIT_EXAMPLES).find(name => current.startsWith(`${name}=`))
  if (key === undefined) return words(Object.keys(LIMIT_EXAMPLES).map(name => `${name}=`))
  return words(LIMIT_EXAMPLES[key as keyof Limits].map(value => `${key}=${value}`))
}
