/**
 * The single source of the config's shape. The validator, the TypeScript types, `config.schema.json` and the reference page
 * are generated from it. `parse.ts` checks the grammar inside strings: hosts, paths, sizes.
 */
import * as v from 'valibot'
import {
  BACKEND_NAMES,
  IMAGE_PULLS,
  ISOLATION_LEVELS,
  NETWORK_MODES,
  PROFILE_NAMES,
  WORKSPACE_MODES,
} from './settings.ts'

const described = <const S extends v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>>(
  schema: S,
  what: string,
) => v.pipe(schema, v.description(what))

const text = (what: string) => described(v.string(), what)
const texts = (what: string) => described(v.array(v.string()), what)
const size = (what: string) => text(`${what}, as "512MiB" or "4GiB"`)
const time = (what: string) => text(`${what}, as "90s", "10m" or "8h"`)
const flag = (what: string) => described(v.boolean(), what)
const count = (what: string) => described(v.number(), what)
const oneOf = <const W extends readonly string[]>(words: W, what: string) =>
  described(v.picklist(words), what)

/** An object of which every key may be absent. */
const section = <const E extends v.ObjectEntries>(what: string, entries: E) =>
  described(v.partial(v.strictObject(entries)), what)

const hostMountSchema = v.strictObject({
  host: text('A path on the host'),
  at: text('The path inside the sandbox'),
  mode: v.optional(oneOf(['ro', 'rw'], 'Read-only unless "rw"')),
})

const volumeMountSchema = v.strictObject({
  volume: text('A named volume that outlives the sandbox'),
  at: text('The path inside the sandbox'),
})

const secretSourceSchema = v.union([
  v.strictObject({ env: text('A variable of the host') }),
  v.strictObject({ file: text('A file of the host, as "~/.config/token"') }),
  v.strictObject({ command: texts('A command of the host and its arguments; its output is the value') }),
  v.strictObject({
    keyring: described(v.record(v.string(), v.string()), 'Attributes of an entry, as secret-tool takes them'),
  }),
  v.strictObject({
    oauth: texts(
      'Token endpoints, as "host:port/oauth/token"; the gateway keeps the tokens of their answers',
    ),
  }),
])

const secretSchema = v.strictObject({
  name: text('The name of the secret, and of the variable inside that holds its placeholder'),
  from: secretSourceSchema,
  to: texts('Where it may go, as "host:port" or "host:port/path/**"; with "http://" before it without TLS'),
  in: v.optional(
    texts(
      'Where it is replaced, as "header:x-api-key" or "query:key"; Authorization and X-Api-Key if absent',
    ),
  ),
  sign: v.optional(oneOf(['aws'], 'The secret is a pair of AWS keys; pen signs requests with it')),
})

const unopenedSchema = v.strictObject({
  host: text('A host, as "host:port"'),
  open: described(v.literal(false), 'TLS to it is never opened'),
})

const fromHostSchema = v.strictObject({ from: v.literal('host') })

export const configSchema = v.partial(
  v.strictObject({
    $schema: text('For editors; pen does not read it'),
    version: described(v.literal(1), 'The version of this shape'),
    profile: oneOf(PROFILE_NAMES, 'The built-in policy to start from'),
    isolation: oneOf(ISOLATION_LEVELS, 'Minimum isolation; pen never falls back to a weaker one'),
    backend: oneOf(BACKEND_NAMES, 'One backend by name'),
    workspace: oneOf(
      WORKSPACE_MODES,
      '"review": writes go to a layer over the project until you accept them; "direct": to the project',
    ),
    files: section('Which files the sandbox sees', {
      read: texts('Paths the sandbox may read'),
      write: texts('Paths the sandbox may read and write'),
      deny: texts('Paths, and globs relative to the workspace, that stay hidden'),
      protect: texts('Paths that are never writable, even if they do not exist at the start'),
    }),
    network: section('Which hosts the sandbox reaches', {
      http: described(
        v.array(v.union([v.string(), unopenedSchema])),
        'Names that may be reached, as "host:port" or "*.host:port"; the port is 443 if absent',
      ),
      tcp: texts('Addresses that may be reached, as "ip:port", and "host.pen.internal:port"'),
      groups: texts('Named sets of hosts that ship with pen'),
      deny: texts('Names and addresses that are always refused: deny wins over allow'),
      ask: oneOf(['never', 'hold'], 'Whether a refused connection waits for a person'),
      mode: oneOf(NETWORK_MODES, "The network: none, through the gateway, or the engine's own open network"),
      upstreamProxy: described(v.nullable(v.string()), 'An HTTP proxy through which the gateway dials'),
      hold: time('With "ask": "hold", how long a connection waits before it is refused'),
      idle: time('How long an idle connection is kept'),
      offline: flag('True overrides every network grant'),
    }),
    exec: section('Limits of a single command', {
      timeout: time('The default timeout of one command'),
      ceiling: time('The longest timeout that a caller may request'),
      maxOutput: size('How much output of one command is kept'),
    }),
    limits: section('Resource limits', {
      cpus: count('Processors, fractions allowed'),
      memory: size('Memory'),
      pids: count('Processes and threads'),
      wall: time('Time from start to end'),
      disk: size('Scratch space, and growth of writable directories'),
      output: size('Growth of ./output'),
      files: count('Open files per process'),
    }),
    env: described(
      v.record(v.string(), v.union([v.string(), fromHostSchema])),
      'Variables for the sandbox: a text, or { "from": "host" } to pass the host\'s value',
    ),
    mounts: described(
      v.array(v.union([hostMountSchema, volumeMountSchema])),
      'Host paths and volumes to mount',
    ),
    image: section('The image of a container sandbox', {
      dockerfile: text('The Dockerfile to build'),
      context: text('The build context'),
      args: described(v.record(v.string(), v.string()), 'Build arguments'),
      pull: oneOf(
        IMAGE_PULLS,
        'When to fetch a base image: "missing" if it is not on this machine, or "never"',
      ),
    }),
    tools: section('Which programs the sandbox may run', {
      shell: flag('Whether a shell may be run'),
      allow: texts('The programs that may run; if absent, all that the mounts show'),
      exec: oneOf(['any', 'listed'], '"listed": nothing else runs, not even a file written inside'),
    }),
    git: section('Settings of git inside', {
      identity: flag('Whether git inside uses your user.name and user.email'),
    }),
    vm: section('Settings of a virtual machine', {
      root: flag('Whether commands are root of the guest, which has a kernel of its own'),
    }),
    user: text('The user inside: "host", or "uid:gid"'),
    runtime: text('The OCI runtime of a container sandbox'),
    ssh: section('SSH', {
      agent: section('Your SSH agent, for programs inside; pen decides about each signature', {
        keys: texts('Fingerprints of keys that may sign, as `ssh-add -l` prints them'),
        hosts: texts('Servers that the keys may log in to, as "host:port"'),
        sign: texts('Purposes of other signatures: "git" for git commit -S'),
      }),
    }),
    secrets: described(
      v.array(secretSchema),
      'Secrets that the gateway puts into requests; the sandbox has placeholders. Not in a project’s document',
    ),
    acceptGaps: texts('Gaps to accept, by name'),
    ports: described(
      v.array(v.strictObject({ guest: v.number(), host: v.number() })),
      "Ports of the sandbox to forward to the host's loopback",
    ),
  }),
)

export type ConfigDocument = v.InferOutput<typeof configSchema>

/** The parts of a schema by which pen names its keys and kinds of values. */
export interface SchemaPart {
  readonly type: string
  readonly entries?: Readonly<Record<string, SchemaPart>>
  readonly value?: SchemaPart
  readonly item?: SchemaPart
  readonly options?: readonly SchemaPart[]
  /** The part that may be absent. */
  readonly wrapped?: SchemaPart
}

export const SCHEMA = configSchema as unknown as SchemaPart

/** The part for a key or index. */
export function schemaBelow(schema: SchemaPart, key: string | number): SchemaPart | undefined {
  const { entries, value, item } = schema
  const own = entries !== undefined && Object.hasOwn(entries, key) ? entries[key] : undefined
  const below = typeof key === 'number' ? item : (own ?? value)
  return below?.type === 'optional' ? below.wrapped : below
}
