/** What may stand for a value: by the word that help shows for it, or by the flag. A test finds what has no row. */
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
const lately = () => import('../render/recent-refusals.ts')
const refused: Source = async () => words((await lately()).refusedHosts(), 'refused lately')

/** A grant that cannot be read keeps nobody from forgetting another. */
const ruled: Source = async () => {
  const { ruledHosts, grantedHosts } = await lately()
  const granted = await grantedHosts().catch(() => [])
  return {
    is: 'words',
    candidates: [
      ...ruledHosts().map(value => ({ value, about: 'in the live config' })),
      ...granted.map(value => ({ value, about: 'for a while' })),
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

/** Values of flags, by what stands for them in help. */
export const VALUES: Readonly<Record<string, Source>> = {
  PATH: PATHS,
  'HOST:PORT': refused,
  'NAME[=VALUE]': async (_, { env }) => words(Object.keys(env).filter(name => /^[A-Za-z_]\w*$/.test(name))),
  'KEY=VALUE': async current => limitExamples(current),
  NAME: async () => words(gapNames()),
  GROUP: groupNames,
  ID: async () => words((await lately()).keptRuns(), 'a run that is kept'),
  // A place in a file, which only its reader knows.
  BYTE: async () => NOTHING,
  BYTES: async () => NOTHING,
  // Read from another command's output, and never guessed.
  'sha256:…': async () => NOTHING,
}

/** Words that are no flags, by verb and name. */
export const WORDS: Readonly<Record<string, Source>> = {
  'allow target': refused,
  'deny target': async () => words((await lately()).seenHosts(), 'seen lately'),
  'forget target': ruled,
  'stop name': sandboxes(state => state !== 'stopped'),
  'status name': anySandbox,
  'rm name': anySandbox,
  'policy explain subject': async (current, context) =>
    /^[./~]/.test(current) ? await PATHS(current, context) : await refused(current, context),
  'config get key': configKey,
  'config set key': configKey,
  // As many kinds as there are keys: what is wrong is told with the right form.
  'config set value': async () => NOTHING,
  'grant path': PATHS,
  'revoke path': async () => words(await grantedPaths(), 'granted'),
  // Inside: what the host has is the broker's to tell, and a completion asks nobody.
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
  // What listens inside nobody on the host knows.
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
