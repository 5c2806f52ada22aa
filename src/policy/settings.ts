/**
 * The checked, typed settings of one layer. The keys are the config's own paths, so merges, explanations and errors use the
 * same names. An absent key sets nothing. Only the merged result denies by absence.
 */
import type { FIELDS, Field } from './fields.ts'
import type { Glob } from './files/glob.ts'
import type { GuestPath, HostPath, Trust } from './files/path.ts'
import type { Port } from './network/port.ts'
import type { Sourced } from './source.ts'

/** Strictest first. */
export const PROFILE_NAMES = ['strict', 'coding', 'dev'] as const
export const ISOLATION_LEVELS = ['auto', 'soft', 'process', 'container', 'gvisor', 'vm'] as const
export const BACKEND_NAMES = ['process', 'podman', 'docker', 'vm', 'apple', 'soft', 'kubernetes'] as const
/** Strictest first. `bridge` is the engine's open network, where pen enforces no rule. */
export const NETWORK_MODES = ['none', 'gateway', 'bridge'] as const
/** Strictest first. `review`: what the sandbox writes in the project goes to a layer over it. */
export const WORKSPACE_MODES = ['review', 'direct'] as const
export const IMAGE_PULLS = ['missing', 'never'] as const

export type ProfileName = (typeof PROFILE_NAMES)[number]
export type Isolation = (typeof ISOLATION_LEVELS)[number]
export type BackendName = (typeof BACKEND_NAMES)[number]
export type WorkspaceMode = (typeof WORKSPACE_MODES)[number]
export type NetworkMode = (typeof NETWORK_MODES)[number]

/**
 * A granted path. `rank` is the specificity of the user's grant. When an untrusted layer narrows the grant to a deeper path,
 * the rank stays, so the grant cannot override a denial.
 */
export interface PathGrant {
  readonly path: HostPath
  readonly rank: number
}

/**
 * A denied place: a glob relative to the workspace, or one absolute path. `alias` is the path as it is written, where links lead
 * from it to `path`.
 */
export type FileDenyRule =
  | { readonly kind: 'glob'; readonly glob: Glob }
  | { readonly kind: 'path'; readonly path: string; readonly alias?: string }

/** A place that stays readable and is never writable. Its links are not resolved: the name is protected even when absent. */
export interface ProtectRule {
  readonly path: string
}

export type EnvValue = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'host' }

export type Mount =
  | { readonly kind: 'host'; readonly host: HostPath; readonly at: GuestPath; readonly mode: 'ro' | 'rw' }
  | { readonly kind: 'volume'; readonly volume: string; readonly at: GuestPath }

export interface PortForward {
  readonly guest: Port
  readonly host: Port
}

export const showPort = ({ guest, host }: PortForward): string => `${guest} at ${host} of the host`

export interface Image {
  readonly dockerfile: string
  readonly context: string
  readonly args: ReadonlyMap<string, string>
  /** When a base image is fetched. */
  readonly pull: (typeof IMAGE_PULLS)[number]
}

/** A list of one layer. An empty list in a config removes the entries of earlier layers. */
export interface List<T> {
  readonly clear: boolean
  readonly items: readonly Sourced<T>[]
}

/** The settings of one layer. `FIELDS` lists them with their types. */
export type Settings = {
  readonly [K in keyof typeof FIELDS]?: (typeof FIELDS)[K] extends Field<infer T> ? T : never
}

export type SettingKey = keyof Settings

export interface Layer {
  readonly name: string
  readonly trust: Trust
  readonly settings: Settings
}
