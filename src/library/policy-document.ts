/**
 * A policy as a program writes it: the shape of `config.json`. docs/policy.md explains each key.
 * Made by `npm run generate` from `src/policy/schema.ts`.
 */

export interface PolicyDocument {
  /** The version of this shape. */
  readonly version?: 1 | undefined
  /** The built-in policy to start from. */
  readonly profile?: 'strict' | 'coding' | 'dev' | undefined
  /** How strong the wall must be; nothing weaker is ever taken. */
  readonly isolation?: 'auto' | 'soft' | 'process' | 'container' | 'gvisor' | undefined
  /** One engine by name. */
  readonly backend?: 'process' | 'podman' | 'docker' | 'soft' | undefined
  /** Which files the sandbox sees. */
  readonly files?:
    | {
        /** Paths the sandbox may read. */
        readonly read?: readonly string[] | undefined
        /** Paths the sandbox may read and write. */
        readonly write?: readonly string[] | undefined
        /** Paths and globs, anchored at the workspace, that stay invisible. */
        readonly deny?: readonly string[] | undefined
        /** Paths that can be read but never written, also when absent at start. */
        readonly protect?: readonly string[] | undefined
      }
    | undefined
  /** Which hosts the sandbox reaches. */
  readonly network?:
    | {
        /** Names that may be reached, as "host:port" or "*.host:port"; the port is 443 if absent. */
        readonly http?: readonly string[] | undefined
        /** Addresses that may be reached, as "ip:port", and "host.pen.internal:port". */
        readonly tcp?: readonly string[] | undefined
        /** Named sets of hosts that ship with pen. */
        readonly groups?: readonly string[] | undefined
        /** Names and addresses that are refused whatever else allows them. */
        readonly deny?: readonly string[] | undefined
        /** Whether a refused connection waits for a person. */
        readonly ask?: 'never' | 'hold' | undefined
        /** The way out: none, the gateway, or the engine's own open network. */
        readonly mode?: 'none' | 'gateway' | 'bridge' | undefined
        /** A company proxy through which the gateway dials. */
        readonly upstreamProxy?: string | null | undefined
        /** With "ask": "hold", how long it waits before it is refused, as "90s", "10m" or "8h". */
        readonly hold?: string | undefined
        /** How long a silent connection is kept, as "90s", "10m" or "8h". */
        readonly idle?: string | undefined
        /** True overrules everything that grants network. */
        readonly offline?: boolean | undefined
      }
    | undefined
  /** Bounds of a single command. */
  readonly exec?:
    | {
        /** How long one command may run when nothing else is said, as "90s", "10m" or "8h". */
        readonly timeout?: string | undefined
        /** The longest timeout that a caller may ask for, as "90s", "10m" or "8h". */
        readonly ceiling?: string | undefined
        /** How much output of one command is kept, as "512MiB" or "4GiB". */
        readonly maxOutput?: string | undefined
      }
    | undefined
  /** What the sandbox may use up. */
  readonly limits?:
    | {
        /** Processors, fractions allowed. */
        readonly cpus?: number | undefined
        /** Memory, as "512MiB" or "4GiB". */
        readonly memory?: string | undefined
        /** Processes and threads. */
        readonly pids?: number | undefined
        /** Time from start to end, as "90s", "10m" or "8h". */
        readonly wall?: string | undefined
        /** Scratch space, and growth of what is writable, as "512MiB" or "4GiB". */
        readonly disk?: string | undefined
        /** Growth of ./output, as "512MiB" or "4GiB". */
        readonly output?: string | undefined
        /** Open files per process. */
        readonly files?: number | undefined
      }
    | undefined
  /** Variables for the sandbox: a text, or { "from": "host" } to pass on the host's. */
  readonly env?:
    | {
        readonly [name: string]:
          | string
          | {
              readonly from: 'host'
            }
      }
    | undefined
  /** Host paths and volumes at chosen places. */
  readonly mounts?:
    | readonly (
        | {
            /** A path on the host. */
            readonly host: string
            /** Where the sandbox sees it. */
            readonly at: string
            /** Read-only unless "rw". */
            readonly mode?: 'ro' | 'rw' | undefined
          }
        | {
            /** A named volume that outlives the sandbox. */
            readonly volume: string
            /** Where the sandbox sees it. */
            readonly at: string
          }
      )[]
    | undefined
  /** The image of a container sandbox. */
  readonly image?:
    | {
        /** The Dockerfile to build. */
        readonly dockerfile?: string | undefined
        /** The build context. */
        readonly context?: string | undefined
        /** Build arguments. */
        readonly args?: { readonly [name: string]: string } | undefined
        /** Whether a base image that is missing is fetched: "missing" does. */
        readonly pull?: 'missing' | 'never' | undefined
      }
    | undefined
  /** Which programs the sandbox may run. */
  readonly tools?:
    | {
        /** Whether a shell may be run. */
        readonly shell?: boolean | undefined
        /** The programs that may be run; absent means those that the mounts show. */
        readonly allow?: readonly string[] | undefined
        /** "listed": nothing else runs, not even a file written inside. */
        readonly exec?: 'any' | 'listed' | undefined
      }
    | undefined
  /** What git inside knows of you. */
  readonly git?:
    | {
        /** Whether git inside has your user.name and user.email. */
        readonly identity?: boolean | undefined
      }
    | undefined
  /** The user inside: "host", or "uid:gid". */
  readonly user?: string | undefined
  /** The OCI runtime of a container sandbox. */
  readonly runtime?: string | undefined
  /** SSH. */
  readonly ssh?:
    | {
        /** Key fingerprints of the host's agent; not passed on yet: gap no-ssh-agent. */
        readonly agent?: readonly string[] | undefined
      }
    | undefined
  /** Gaps that you accept by name. */
  readonly acceptGaps?: readonly string[] | undefined
  /** Ports of the sandbox that the host's loopback reaches. */
  readonly ports?:
    | readonly {
        readonly guest: number
        readonly host: number
      }[]
    | undefined
}

export type BackendName = NonNullable<PolicyDocument['backend']>
