/**
 * A policy as a program writes it: the shape of `config.json`. docs/policy.md explains each key.
 * Made by `npm run generate` from `src/policy/schema.ts`.
 */

export interface PolicyDocument {
  /** The version of this shape. */
  readonly version?: 1 | undefined
  /** The built-in policy to start from. */
  readonly profile?: 'strict' | 'coding' | 'dev' | undefined
  /** Minimum isolation; pen never falls back to a weaker one. */
  readonly isolation?: 'auto' | 'soft' | 'process' | 'container' | 'gvisor' | 'vm' | undefined
  /** One backend by name. */
  readonly backend?: 'process' | 'podman' | 'docker' | 'vm' | 'soft' | undefined
  /** "review": writes go to a layer over the project until you accept them; "direct": to the project. */
  readonly workspace?: 'review' | 'direct' | undefined
  /** Which files the sandbox sees. */
  readonly files?:
    | {
        /** Paths the sandbox may read. */
        readonly read?: readonly string[] | undefined
        /** Paths the sandbox may read and write. */
        readonly write?: readonly string[] | undefined
        /** Paths, and globs relative to the workspace, that stay hidden. */
        readonly deny?: readonly string[] | undefined
        /** Paths that are never writable, even if they do not exist at the start. */
        readonly protect?: readonly string[] | undefined
      }
    | undefined
  /** Which hosts the sandbox reaches. */
  readonly network?:
    | {
        /** Names that may be reached, as "host:port" or "*.host:port"; the port is 443 if absent. */
        readonly http?:
          | readonly (
              | string
              | {
                  /** A host, as "host:port". */
                  readonly host: string
                  /** TLS to it is never opened. */
                  readonly open: false
                }
            )[]
          | undefined
        /** Addresses that may be reached, as "ip:port", and "host.pen.internal:port". */
        readonly tcp?: readonly string[] | undefined
        /** Named sets of hosts that ship with pen. */
        readonly groups?: readonly string[] | undefined
        /** Names and addresses that are always refused: deny wins over allow. */
        readonly deny?: readonly string[] | undefined
        /** Whether a refused connection waits for a person. */
        readonly ask?: 'never' | 'hold' | undefined
        /** The network: none, through the gateway, or the engine's own open network. */
        readonly mode?: 'none' | 'gateway' | 'bridge' | undefined
        /** An HTTP proxy through which the gateway dials. */
        readonly upstreamProxy?: string | null | undefined
        /** With "ask": "hold", how long a connection waits before it is refused, as "90s", "10m" or "8h". */
        readonly hold?: string | undefined
        /** How long an idle connection is kept, as "90s", "10m" or "8h". */
        readonly idle?: string | undefined
        /** True overrides every network grant. */
        readonly offline?: boolean | undefined
      }
    | undefined
  /** Limits of a single command. */
  readonly exec?:
    | {
        /** The default timeout of one command, as "90s", "10m" or "8h". */
        readonly timeout?: string | undefined
        /** The longest timeout that a caller may request, as "90s", "10m" or "8h". */
        readonly ceiling?: string | undefined
        /** How much output of one command is kept, as "512MiB" or "4GiB". */
        readonly maxOutput?: string | undefined
      }
    | undefined
  /** Resource limits. */
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
        /** Scratch space, and growth of writable directories, as "512MiB" or "4GiB". */
        readonly disk?: string | undefined
        /** Growth of ./output, as "512MiB" or "4GiB". */
        readonly output?: string | undefined
        /** Open files per process. */
        readonly files?: number | undefined
      }
    | undefined
  /** Variables for the sandbox: a text, or { "from": "host" } to pass the host's value. */
  readonly env?:
    | {
        readonly [name: string]:
          | string
          | {
              readonly from: 'host'
            }
      }
    | undefined
  /** Host paths and volumes to mount. */
  readonly mounts?:
    | readonly (
        | {
            /** A path on the host. */
            readonly host: string
            /** The path inside the sandbox. */
            readonly at: string
            /** Read-only unless "rw". */
            readonly mode?: 'ro' | 'rw' | undefined
          }
        | {
            /** A named volume that outlives the sandbox. */
            readonly volume: string
            /** The path inside the sandbox. */
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
        /** When to fetch a base image: "missing" if it is not on this machine, or "never". */
        readonly pull?: 'missing' | 'never' | undefined
      }
    | undefined
  /** Which programs the sandbox may run. */
  readonly tools?:
    | {
        /** Whether a shell may be run. */
        readonly shell?: boolean | undefined
        /** The programs that may run; if absent, all that the mounts show. */
        readonly allow?: readonly string[] | undefined
        /** "listed": nothing else runs, not even a file written inside. */
        readonly exec?: 'any' | 'listed' | undefined
      }
    | undefined
  /** Settings of git inside. */
  readonly git?:
    | {
        /** Whether git inside uses your user.name and user.email. */
        readonly identity?: boolean | undefined
      }
    | undefined
  /** Settings of a virtual machine. */
  readonly vm?:
    | {
        /** Whether commands are root of the guest, which has a kernel of its own. */
        readonly root?: boolean | undefined
      }
    | undefined
  /** The user inside: "host", or "uid:gid". */
  readonly user?: string | undefined
  /** The OCI runtime of a container sandbox. */
  readonly runtime?: string | undefined
  /** SSH. */
  readonly ssh?:
    | {
        /** Your SSH agent, for programs inside; pen decides about each signature. */
        readonly agent?:
          | {
              /** Fingerprints of keys that may sign, as `ssh-add -l` prints them. */
              readonly keys?: readonly string[] | undefined
              /** Servers that the keys may log in to, as "host:port". */
              readonly hosts?: readonly string[] | undefined
              /** Purposes of other signatures: "git" for git commit -S. */
              readonly sign?: readonly string[] | undefined
            }
          | undefined
      }
    | undefined
  /** Secrets that the gateway puts into requests; the sandbox has placeholders. Not in a project’s document. */
  readonly secrets?:
    | readonly {
        /** The name of the secret, and of the variable inside that holds its placeholder. */
        readonly name: string
        readonly from:
          | {
              /** A variable of the host. */
              readonly env: string
            }
          | {
              /** A file of the host, as "~/.config/token". */
              readonly file: string
            }
          | {
              /** A command of the host and its arguments; its output is the value. */
              readonly command: readonly string[]
            }
          | {
              /** Attributes of an entry, as secret-tool takes them. */
              readonly keyring: { readonly [name: string]: string }
            }
          | {
              /** Token endpoints, as "host:port/oauth/token"; the gateway keeps the tokens of their answers. */
              readonly oauth: readonly string[]
            }
        /** Where it may go, as "host:port" or "host:port/path/**"; with "http://" before it without TLS. */
        readonly to: readonly string[]
        /** Where it is replaced, as "header:x-api-key" or "query:key"; Authorization and X-Api-Key if absent. */
        readonly in?: readonly string[] | undefined
        /** The secret is a pair of AWS keys; pen signs requests with it. */
        readonly sign?: 'aws' | undefined
      }[]
    | undefined
  /** Gaps to accept, by name. */
  readonly acceptGaps?: readonly string[] | undefined
  /** Ports of the sandbox to forward to the host's loopback. */
  readonly ports?:
    | readonly {
        readonly guest: number
        readonly host: number
      }[]
    | undefined
}

export type BackendName = NonNullable<PolicyDocument['backend']>
