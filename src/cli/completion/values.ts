/** Completions of values, by the placeholder in help. A test finds placeholders without a row. */
import { readFileGrants } from '../../config/grants/file-grants.ts'
import { findProject } from '../../config/project.ts'
import { listSandboxes } from '../../lifecycle/list.ts'
import { GROUPS } from '../../policy/network/groups.ts'
import type { Limits } from '../../policy/policy.ts'
import { PRESETS } from '../../policy/presets.ts'
import { configSchema } from '../../policy/schema.ts'
import type { FlagSpec } from '../frame/flag-spec.ts'
import { gapNames } from '../frame/gap-names.ts'
import type { VerbTable } from '../frame/verb.ts'
import { NOTHING, type Offer, words } from './candidate.ts'

export interface Context {
  readonly table: VerbTable
  readonly env: Readonly<Record<string, string | undefined>>
}

export const CONTEXT: Context = { table: {}, env: process.env }

export const SHELLS = ['bash', 'zsh', 'fish'] as const

type Source = (current: string, context: Context) => Promise<Offer>

const PATHS: Source = async () => ({ is: 'paths' })
const recent = () => import('../render/recent-refusals.ts')
const refused: Source = async () => words((await recent()).refusedHosts(), 'recently refused')

/** An unreadable grant does not hide the others. */
const ruled: Source = async () => {
  const { ruledHosts, grantedHosts } = await recent()
  const granted = await grantedHosts().catch(() => [])
  return {
    is: 'words',
    candidates: [
      ...ruledHosts().map(value => ({ value, about: 'in the live config' })),
      ...granted.map(value => ({ value, about: 'temporary' })),
    ],
  }
}

const configKey: Source = async () => words(configKeys())

const groupNames: Source = async () => {
  return {
    is: 'words',
    candidates: Object.entries(GROUPS).map(([value, { reason }]) => ({ value, about: reason })),
  }
}

const agentNames: Source = async () => {
  return {
    is: 'words',
    candidates: Object.entries(PRESETS).map(([value, { title }]) => ({ value, about: title })),
  }
}

async function grantedPaths(): Promise<string[]> {
  return readFileGrants(findProject().stateDir).map(({ path }) => path)
}

const sandboxes =
  (isWanted: (state: string) => boolean): Source =>
  async () => {
    const known = (await listSandboxes({ repair: false })).filter(({ state }) => isWanted(state))
    return {
      is: 'words',
      candidates: known.map(({ id, workspace = 'never started' }) => ({ value: id, about: workspace })),
    }
  }
const anySandbox = sandboxes(() => true)

/** Values of flags, by their placeholder in help. */
export const VALUES: Readonly<Record<string, Source>> = {
  PATH: PATHS,
  'HOST:PORT': refused,
  'NAME[=VALUE]': async (_, { env }) => words(Object.keys(env).filter(name => /^[A-Za-z_]\w*$/.test(name))),
  'KEY=VALUE': async current => limitExamples(current),
  NAME: async () => words(gapNames()),
  GROUP: groupNames,
  ID: async () => words((await recent()).storedRuns(), 'stored run'),
  // Positions in a file cannot be guessed.
  BYTE: async () => NOTHING,
  BYTES: async () => NOTHING,
  // The user copies the digest from another command's output.
  'sha256:…': async () => NOTHING,
}

/** Positional arguments, by verb and name. */
export const WORDS: Readonly<Record<string, Source>> = {
  'allow target': refused,
  'deny target': async () => words((await recent()).seenHosts(), 'recently used'),
  'forget target': ruled,
  'stop name': sandboxes(state => state !== 'stopped'),
  'status name': anySandbox,
  'rm name': anySandbox,
  'policy explain subject': async (current, context) =>
    /^[./~]/.test(current) ? await PATHS(current, context) : await refused(current, context),
  'config get key': configKey,
  'config set key': configKey,
  // Each key has its own kind of value. pen reports a wrong one with the right form.
  'config set value': async () => NOTHING,
  'grant path': PATHS,
  'revoke path': async () => words(await grantedPaths(), 'granted'),
  // Only the broker knows the host's files, and completion does not connect to it.
  'files ls path': PATHS,
  'files stat path': PATHS,
  'files cat path': PATHS,
  'files get path': PATHS,
  'files get to': PATHS,
  'files put from': PATHS,
  'files put path': PATHS,
  'groups name': groupNames,
  'agent name': agentNames,
  'help verb': async (_, { table }) => words(Object.keys(table).map(name => name.split(' ')[0] ?? name)),
  // The host does not know which ports are open inside.
  'forward port': async () => NOTHING,
  'completion shell': async () => words(SHELLS),
}

const DURATIONS = ['30s', '10m', '1h', '8h', '1d']

export async function valueOffer(
  spec: Exclude<FlagSpec, { kind: 'boolean' }>,
  current: string,
  context: Context,
): Promise<Offer> {
  if (spec.kind === 'choice') return words(spec.choices)
  if (spec.kind === 'duration') return words(DURATIONS)
  return await ask(VALUES, spec.value, current, context)
}

export const positionalOffer = (
  verb: string,
  name: string,
  current: string,
  context: Context,
): Promise<Offer> => ask(WORDS, `${verb} ${name}`, current, context)

async function ask(
  rows: Readonly<Record<string, Source>>,
  key: string,
  current: string,
  context: Context,
): Promise<Offer> {
  const source = Object.hasOwn(rows, key) ? rows[key] : undefined
  return source === undefined ? NOTHING : await source(current, context)
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
