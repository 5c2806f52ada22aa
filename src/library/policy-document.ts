/** A policy as a program writes it: the shape of `config.json`, without the parser behind it. docs/policy.md explains each key. */

export type BackendName = 'process' | 'podman' | 'docker' | 'vm' | 'apple' | 'soft' | 'kubernetes'

/** `'512MiB'`. */
type Size = string
/** `'90s'`, `'8h'`. */
type Time = string

export interface PolicyDocument {
  readonly version?: 1
  readonly profile?: 'strict' | 'coding' | 'dev'
  /** How strong the wall must be; nothing weaker is taken. */
  readonly isolation?: 'auto' | 'vm' | 'gvisor' | 'container' | 'process' | 'soft'
  readonly backend?: BackendName
  readonly files?: {
    readonly read?: readonly string[]
    readonly write?: readonly string[]
    readonly deny?: readonly string[]
    readonly protect?: readonly string[]
  }
  readonly network?: {
    /** `host:port` or `*.host:port`. */
    readonly http?: readonly string[]
    /** `ip:port`, and `host.pen.internal:port`. */
    readonly tcp?: readonly string[]
    readonly groups?: readonly string[]
    readonly deny?: readonly string[]
    readonly ask?: 'never' | 'hold'
    readonly mode?: 'gateway' | 'none' | 'bridge'
    readonly hold?: Time
    readonly idle?: Time
    readonly offline?: boolean
  }
  readonly exec?: { readonly timeout?: Time; readonly ceiling?: Time; readonly maxOutput?: Size }
  readonly limits?: {
    readonly cpus?: number
    readonly memory?: Size
    readonly pids?: number
    readonly wall?: Time
    readonly disk?: Size
    readonly output?: Size
    readonly files?: number
  }
  readonly env?: Readonly<Record<string, string | { readonly from: 'host' }>>
  readonly tools?: {
    readonly shell?: boolean
    readonly allow?: readonly string[]
    readonly exec?: 'any' | 'listed'
  }
  readonly acceptGaps?: readonly string[]
}
