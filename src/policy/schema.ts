/**
 * The single source of the config's shape. The validator, the TypeScript types, `config.schema.json` and the reference page
 * are generated from it. `parse.ts` checks the grammar inside strings: hosts, paths, sizes.
 */
import * as v from 'valibot'
import { BACKEND_NAMES, IMAGE_PULLS, ISOLATION_LEVELS, NETWORK_MODES, PROFILE_NAMES } from './vocabulary.ts'

const described = <const S extends v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>>(
  schema: S,
  text: string,
) => v.pipe(schema, v.description(text))

const text = (what: string) => described(v.string(), what)
const texts = (what: string) => described(v.array(v.string()), what)
const size = (what: string) => text(`${what}, as "512MiB" or "4GiB"`)
const time = (what: string) => text(`${what}, as "90s", "10m" or "8h"`)

const filesSchema = v.strictObject({
  read: v.optional(texts('Paths the sandbox may read')),
  write: v.optional(texts('Paths the sandbox may read and write')),
  deny: v.optional(texts('Paths, and globs relative to the workspace, that stay hidden')),
  protect: v.optional(texts('Paths that are never writable, even if they do not exist at the start')),
})

const networkSchema = v.strictObject({
  http: v.optional(
    texts('Names that may be reached, as "host:port" or "*.host:port"; the port is 443 if absent'),
  ),
  tcp: v.optional(texts('Addresses that may be reached, as "ip:port", and "host.pen.internal:port"')),
  groups: v.optional(texts('Named sets of hosts that ship with pen')),
  deny: v.optional(texts('Names and addresses that are always refused: deny wins over allow')),
  ask: v.optional(
    described(v.picklist(['never', 'hold']), 'Whether a refused connection waits for a person'),
  ),
  mode: v.optional(
    described(
      v.picklist(NETWORK_MODES),
      "The network: none, through the gateway, or the engine's own open network",
    ),
  ),
  upstreamProxy: v.optional(
    described(v.nullable(v.string()), 'An HTTP proxy through which the gateway dials'),
  ),
  hold: v.optional(time('With "ask": "hold", how long a connection waits before it is refused')),
  idle: v.optional(time('How long an idle connection is kept')),
  offline: v.optional(described(v.boolean(), 'True overrides every network grant')),
})

const execSchema = v.strictObject({
  timeout: v.optional(time('The default timeout of one command')),
  ceiling: v.optional(time('The longest timeout that a caller may request')),
  maxOutput: v.optional(size('How much output of one command is kept')),
})

const limitsSchema = v.strictObject({
  cpus: v.optional(described(v.number(), 'Processors, fractions allowed')),
  memory: v.optional(size('Memory')),
  pids: v.optional(described(v.number(), 'Processes and threads')),
  wall: v.optional(time('Time from start to end')),
  disk: v.optional(size('Scratch space, and growth of writable directories')),
  output: v.optional(size('Growth of ./output')),
  files: v.optional(described(v.number(), 'Open files per process')),
})

const hostMountSchema = v.strictObject({
  host: text('A path on the host'),
  at: text('The path inside the sandbox'),
  mode: v.optional(described(v.picklist(['ro', 'rw']), 'Read-only unless "rw"')),
})

const volumeMountSchema = v.strictObject({
  volume: text('A named volume that outlives the sandbox'),
  at: text('The path inside the sandbox'),
})

const fromHostSchema = v.strictObject({ from: v.literal('host') })

export const configSchema = v.strictObject({
  $schema: v.optional(text('For editors; pen does not read it')),
  version: v.optional(described(v.literal(1), 'The version of this shape')),
  profile: v.optional(described(v.picklist(PROFILE_NAMES), 'The built-in policy to start from')),
  isolation: v.optional(
    described(v.picklist(ISOLATION_LEVELS), 'Minimum isolation; pen never falls back to a weaker one'),
  ),
  backend: v.optional(described(v.picklist(BACKEND_NAMES), 'One backend by name')),
  files: v.optional(described(filesSchema, 'Which files the sandbox sees')),
  network: v.optional(described(networkSchema, 'Which hosts the sandbox reaches')),
  exec: v.optional(described(execSchema, 'Limits of a single command')),
  limits: v.optional(described(limitsSchema, 'Resource limits')),
  env: v.optional(
    described(
      v.record(v.string(), v.union([v.string(), fromHostSchema])),
      'Variables for the sandbox: a text, or { "from": "host" } to pass the host\'s value',
    ),
  ),
  mounts: v.optional(
    described(v.array(v.union([hostMountSchema, volumeMountSchema])), 'Host paths and volumes to mount'),
  ),
  image: v.optional(
    described(
      v.strictObject({
        dockerfile: v.optional(text('The Dockerfile to build')),
        context: v.optional(text('The build context')),
        args: v.optional(described(v.record(v.string(), v.string()), 'Build arguments')),
        pull: v.optional(
          described(
            v.picklist(IMAGE_PULLS),
            'When to fetch a base image: "missing" if it is not on this machine, or "never"',
          ),
        ),
      }),
      'The image of a container sandbox',
    ),
  ),
  tools: v.optional(
    described(
      v.strictObject({
        shell: v.optional(described(v.boolean(), 'Whether a shell may be run')),
        allow: v.optional(texts('The programs that may run; if absent, all that the mounts show')),
        exec: v.optional(
          described(
            v.picklist(['any', 'listed']),
            '"listed": nothing else runs, not even a file written inside',
          ),
        ),
      }),
      'Which programs the sandbox may run',
    ),
  ),
  git: v.optional(
    described(
      v.strictObject({
        identity: v.optional(described(v.boolean(), 'Whether git inside uses your user.name and user.email')),
      }),
      'Settings of git inside',
    ),
  ),
  user: v.optional(text('The user inside: "host", or "uid:gid"')),
  runtime: v.optional(text('The OCI runtime of a container sandbox')),
  ssh: v.optional(
    described(
      v.strictObject({
        agent: v.optional(
          texts("Key fingerprints of the host's SSH agent; not supported yet: gap no-ssh-agent"),
        ),
      }),
      'SSH',
    ),
  ),
  acceptGaps: v.optional(texts('Gaps to accept, by name')),
  ports: v.optional(
    described(
      v.array(v.strictObject({ guest: v.number(), host: v.number() })),
      "Ports of the sandbox to forward to the host's loopback",
    ),
  ),
})

export type ConfigDocument = v.InferOutput<typeof configSchema>
