/** The compiled policy: what a sandbox may do. No field is optional, and the zero value denies everything. */
import type { Bytes, Millis } from '../base/quantity.ts'
import type { HostPath } from './files/path.ts'
import type { AllowRule, DenyRule } from './network/net-rule.ts'
import { compileNetwork, type NetworkIndex } from './network/network.ts'
import type { OnceRules } from './network/once-rules.ts'
import type { Secret } from './network/secret.ts'
import type {
  BackendName,
  EnvValue,
  FileDenyRule,
  Image,
  Isolation,
  Mount,
  NetworkMode,
  PathGrant,
  PortForward,
  ProfileName,
  ProtectRule,
  SettingKey,
  WorkspaceMode,
} from './settings.ts'
import type { Setting, Source, Sourced } from './source.ts'

interface FilePolicy {
  readonly read: readonly Sourced<PathGrant>[]
  readonly write: readonly Sourced<PathGrant>[]
  readonly deny: readonly Sourced<FileDenyRule>[]
  readonly protect: readonly Sourced<ProtectRule>[]
}

export interface NetworkPolicy {
  readonly mode: NetworkMode
  readonly offline: boolean
  readonly ask: 'never' | 'hold'
  /** How long a connection waits for a person's answer. */
  readonly hold: Millis
  readonly idle: Millis
  readonly upstreamProxy: string | null
  readonly groups: readonly string[]
  readonly allow: readonly Sourced<AllowRule>[]
  readonly deny: readonly Sourced<DenyRule>[]
  /** Rules for one connection each. They are not in the index, because a connection that uses one must consume it. */
  readonly once: OnceRules
  /** The project document's limits. Grants of the user beyond them have no effect, so pen asks no question about those. */
  readonly ceilings: readonly NetCeiling[]
  readonly secrets: readonly Sourced<Secret>[]
  readonly index: NetworkIndex
}

/** One of the two lists of an untrusted document. */
export interface NetCeiling {
  readonly list: 'http' | 'tcp'
  readonly rules: readonly AllowRule[]
}

export interface Limits {
  readonly cpus: number
  readonly memory: Bytes
  readonly pids: number
  readonly wall: Millis
  readonly disk: Bytes
  readonly output: Bytes
  readonly files: number
}

interface ExecPolicy {
  readonly timeout: Millis
  readonly ceiling: Millis
  readonly maxOutput: Bytes
}

export interface ToolPolicy {
  readonly shell: boolean
  /** 'shown' means every program that the mounts show. */
  readonly allow: readonly string[] | 'shown'
  readonly exec: 'any' | 'listed'
}

/** Files and variables that point package managers inside at the sources that a group opens. */
export interface PackageSources {
  readonly files: readonly { readonly at: string; readonly text: string }[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
}

export interface Policy {
  readonly profile: ProfileName
  readonly isolation: Isolation
  readonly backend: BackendName | 'any'
  readonly workspace: HostPath
  readonly workspaceMode: WorkspaceMode
  readonly files: FilePolicy
  readonly network: NetworkPolicy
  readonly exec: ExecPolicy
  readonly limits: Limits
  readonly env: ReadonlyMap<string, Setting<EnvValue>>
  readonly packages: PackageSources
  readonly git: { readonly identity: boolean }
  readonly vm: { readonly root: boolean }
  readonly mounts: readonly Sourced<Mount>[]
  readonly image: Image | 'default'
  readonly tools: ToolPolicy
  readonly user: string
  readonly runtime: string | 'default'
  /** Keys of the host's SSH agent, and what they may sign. */
  readonly sshAgent: {
    /** Fingerprints. */
    readonly keys: readonly string[]
    /** `host:port`. */
    readonly hosts: readonly string[]
    readonly sign: readonly string[]
  }
  readonly acceptGaps: readonly string[]
  readonly ports: readonly Sourced<PortForward>[]
  /** The layer that set each single value. */
  readonly sources: ReadonlyMap<SettingKey, Source>
}

/** The policy without any grant. Compilation starts here, so a forgotten field denies. */
export const denyAll = (workspace: HostPath): Policy => ({
  profile: 'strict',
  isolation: 'auto',
  backend: 'any',
  workspace,
  workspaceMode: 'review',
  files: { read: [], write: [], deny: [], protect: [] },
  network: {
    mode: 'none',
    offline: true,
    ask: 'never',
    hold: 1 as Millis,
    idle: 1 as Millis,
    upstreamProxy: null,
    groups: [],
    allow: [],
    deny: [],
    once: { allow: [], deny: [] },
    ceilings: [],
    secrets: [],
    index: compileNetwork({ mode: 'none', offline: true, allow: [], deny: [] }),
  },
  exec: { timeout: 1 as Millis, ceiling: 1 as Millis, maxOutput: 1 as Bytes },
  limits: {
    cpus: 0.01,
    memory: 1 as Bytes,
    pids: 1,
    wall: 1 as Millis,
    disk: 1 as Bytes,
    output: 1 as Bytes,
    files: 16,
  },
  env: new Map(),
  packages: { files: [], env: [] },
  git: { identity: false },
  vm: { root: false },
  mounts: [],
  image: 'default',
  tools: { shell: false, allow: [], exec: 'listed' },
  user: 'host',
  runtime: 'default',
  sshAgent: { keys: [], hosts: [], sign: [] },
  acceptGaps: [],
  ports: [],
  sources: new Map(),
})
