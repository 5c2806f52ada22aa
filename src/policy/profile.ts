/** The built-in base policies, each an ordinary layer. `strict` grants less than `coding`, and `coding` less than `dev`. */
import type { Bytes, Millis } from '../base/quantity.ts'
import { parseGlob } from './files/glob.ts'
import { depth, type HostPath, type PathWorld } from './files/path.ts'
import { DENIED_GLOBS, PROTECTED_PLACES } from './files/protected-places.ts'
import type { Limits } from './policy.ts'
import type { FileDenyRule, Layer, List, PathGrant, ProfileName, ProtectRule, Settings } from './settings.ts'
import type { Setting, Source, Sourced } from './source.ts'

const GiB = 2 ** 30
const MiB = 2 ** 20
const HOUR = 3_600_000 as Millis

const TIGHT: Limits = {
  cpus: 1,
  memory: GiB as Bytes,
  pids: 128,
  wall: HOUR,
  disk: GiB as Bytes,
  output: (256 * MiB) as Bytes,
  files: 1024,
}

const ROOMY: Limits = {
  cpus: 2,
  memory: (4 * GiB) as Bytes,
  pids: 4096,
  wall: (8 * HOUR) as Millis,
  disk: (10 * GiB) as Bytes,
  output: GiB as Bytes,
  files: 4096,
}

/** The volume that keeps package caches between runs. Only the sandbox uses it; no host program reads it. */
export const CACHE_VOLUME = 'cache'
export const SANDBOX_HOME = '/home/agent'
/** The filtered SSH agent, and the keys of the servers that it may be used for. */
export const AGENT_SOCKET = '/run/pen/ssh-agent'
export const AGENT_HOSTS = '/run/pen/ssh-known-hosts'
/** The path of the note for agents inside: see `plan/agent-note.ts`. */
export const NOTE_PATH = `${SANDBOX_HOME}/AGENTS.md`

/** The system git config inside. It includes the image's own file, and every other git setting overrides it. */
export const GIT_CONFIG_PATH = '/etc/pen.gitconfig'

export function profileLayer(
  name: ProfileName,
  world: PathWorld,
  /** Project files that the user's home links to. */
  linked: readonly Sourced<ProtectRule>[] = [],
): Layer {
  const source: Source = { layer: `profile ${name}`, place: undefined }
  const set = <T>(value: T): Setting<T> => ({ value, source })
  const list = <T>(...rules: readonly T[]): List<T> => ({
    clear: false,
    items: rules.map(rule => ({ rule, source })),
  })
  const grant = (path: string): PathGrant => ({ path: path as HostPath, rank: depth(path) })
  const strict = name === 'strict'
  const limits = strict ? TIGHT : ROOMY

  const settings: Settings = {
    profile: set(name),
    isolation: set('auto'),
    workspace: set('direct'),
    'files.read': list(grant(world.workspace)),
    'files.write': list(grant(strict ? `${world.workspace}/output` : world.workspace)),
    'files.deny': list(...DENIED_GLOBS.map(deniedGlob)),
    // `strict` needs these too: a grant of the user must not make a protected place writable.
    'files.protect': {
      clear: false,
      items: [
        ...list(...PROTECTED_PLACES.map(place => ({ path: `${world.workspace}/${place.path}` }))).items,
        ...linked,
      ],
    },
    'network.ask': set('never'),
    'network.hold': set(60_000 as Millis),
    'network.mode': set(strict ? 'none' : 'gateway'),
    'network.upstreamProxy': set(null),
    'network.idle': set(HOUR),
    'network.offline': set(false),
    'exec.timeout': set(120_000 as Millis),
    'exec.ceiling': set(600_000 as Millis),
    'exec.maxOutput': set((10 * MiB) as Bytes),
    'limits.cpus': set(limits.cpus),
    'limits.memory': set(limits.memory),
    'limits.pids': set(limits.pids),
    'limits.wall': set(limits.wall),
    'limits.disk': set(limits.disk),
    'limits.output': set(limits.output),
    'limits.files': set(limits.files),
    mounts: list({ kind: 'volume' as const, volume: CACHE_VOLUME, at: `${SANDBOX_HOME}/.cache` as never }),
    'tools.shell': set(true),
    'tools.exec': set('any'),
    // A read-only workspace cannot commit.
    'git.identity': set(!strict),
    'vm.root': set(false),
    user: set('host'),
  }
  return { name: source.layer, trust: 'built-in', settings }
}

function deniedGlob(text: string): FileDenyRule {
  const glob = parseGlob(text)
  if (!glob.ok) throw new Error(`built-in glob ${text}: ${glob.why}`)
  return { kind: 'glob', glob: glob.value }
}
