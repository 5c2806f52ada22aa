/** What the user of this program lets a running sandbox do: the same files as `pen allow` and `pen grant` write, by the same commands. */
import { resolve } from '../base/posix-path.ts'
import { MAX_ASK_MS, MAX_TARGET_LENGTH } from '../control/messages.ts'
import type { UserAnswer } from '../gateway/ask-user.ts'
import type { Judged } from '../run/judge-refusal.ts'
import type { SandboxStatus } from '../run/status.ts'
import type { AuditTail } from './audit-tail.ts'
import { checkOptions, checkValue, type Shape, usage } from './check-options.ts'
import type { Surroundings } from './command.ts'
import { pathInside } from './exec-options.ts'
import type { PenProgram } from './pen-program.ts'
import { SandboxError } from './sandbox-error.ts'
import { askFor } from './supervisor-connection.ts'

/** One of them; without any, `session`. */
export interface AllowOptions {
  /** Until this sandbox ends. */
  readonly session?: boolean | undefined
  /** For the next connection there. */
  readonly once?: boolean | undefined
  /** For this long: `'10m'`, or milliseconds. */
  readonly for?: string | number | undefined
  /** From now on, for every sandbox of the project. */
  readonly always?: boolean | undefined
}

export interface GrantOptions {
  /** Also for writing. */
  readonly rw?: boolean | undefined
  /** For this long: `'10m'`, or milliseconds. An hour where nothing is said. */
  readonly for?: string | number | undefined
}

export interface PermissionRequest {
  /** `host:port` to connect to. */
  readonly host?: string | undefined
  /** Or a file or directory of the host. */
  readonly path?: string | undefined
  /** Also to write it. */
  readonly rw?: boolean | undefined
}

export interface PermissionAnswer {
  readonly granted: boolean
  /** What the user runs on the host to give it; null where it is given, or nothing would. */
  readonly permission: string | null
  /** Why it is not given. */
  readonly why: string | null
}

export interface RequestOptions {
  /** How long an answer is waited for, in milliseconds; at most ten minutes, none where nothing is said. */
  readonly wait?: number | undefined
  readonly signal?: AbortSignal | undefined
}

const ALLOW_SHAPE: Shape<AllowOptions> = {
  session: 'boolean',
  once: 'boolean',
  for: 'time',
  always: 'boolean',
}

/** A supervisor looks four times a second. */
const IN_FORCE_MS = 5000
const LOOK_MS = 500

interface Granted {
  readonly grants: readonly { readonly path: string; readonly write: boolean }[]
}

/** @internal */
export class Permissions {
  readonly #pen: PenProgram
  readonly #tail: AuditTail
  readonly #status: SandboxStatus
  readonly #stateDir: string
  #look: Promise<Granted> | undefined

  constructor(pen: PenProgram, { tail, stateDir }: Surroundings, status: SandboxStatus) {
    this.#pen = pen
    this.#tail = tail
    this.#status = status
    this.#stateDir = stateDir
  }

  /** Allows or denies, and returns when it is in force. */
  async say(verb: 'allow' | 'deny', target: string, options: AllowOptions): Promise<void> {
    checkValue(`box.${verb}()`, 'the host', target, 'text')
    checkOptions(`box.${verb}()`, options, ALLOW_SHAPE)
    if (this.#status.gateway === null)
      throw new SandboxError('STATE', {
        what: `this sandbox has no network: ${this.#status.network}`,
        retry: false,
        hint: 'start it without offline, and with network.mode "gateway"',
      })
    if (target.startsWith('-')) throw usage(`"${target}" is no host`, 'registry.example.com:443')
    const mark = this.#tail.mark()
    await this.#pen.verb([verb, target, ...lifeFlags(options)])
    const seen = await this.#tail.until(
      mark,
      ({ kind }) => kind === 'policy-changed' || kind === 'policy-edit-refused',
      IN_FORCE_MS,
    )
    if (seen?.kind === 'policy-changed') return
    throw new SandboxError('STATE', {
      what: `${target} is not in force: ${seen === undefined ? 'the sandbox did not take it up' : String(seen['reason'])}`,
      hint: 'pen logs tells more',
    })
  }

  async grant(path: string, options: GrantOptions): Promise<void> {
    checkValue('box.grant()', 'the path', path, 'text')
    checkOptions('box.grant()', options, { rw: 'boolean', for: 'time' })
    const life = duration(options.for ?? '1h')
    await this.#pen.verb(['grant', resolve(path), ...(options.rw === true ? ['--rw'] : []), '--for', life])
    this.#look = undefined
  }

  /** Grants nothing: the user does, by a command of pen's, or does not. */
  async request(wanted: PermissionRequest, options: RequestOptions): Promise<PermissionAnswer> {
    checkOptions('box.requestPermission()', wanted, { host: 'text', path: 'text', rw: 'boolean' })
    checkOptions('box.requestPermission()', options, { wait: 'number', signal: 'signal' })
    const { wait = 0, signal } = options
    const waitMs = Math.min(Math.max(0, wait), MAX_ASK_MS)
    if ((wanted.host === undefined) === (wanted.path === undefined))
      throw usage('a permission is for a host or for a path', '{ host: "registry.example.com:443" }')
    return wanted.host === undefined
      ? await this.#requestPath(
          pathInside(wanted.path ?? '', this.#status.workspace),
          wanted.rw === true,
          waitMs,
          signal,
        )
      : await this.#requestHost(wanted.host, waitMs)
  }

  async #requestHost(target: string, waitMs: number): Promise<PermissionAnswer> {
    if (target.length > MAX_TARGET_LENGTH) throw usage('a host that is none', 'registry.example.com:443')
    const answer = (await askFor(this.#stateDir, { want: 'ask', target, waitMs }, waitMs)) as UserAnswer
    if (answer.allowed) return GIVEN
    return { granted: false, permission: answer.fix, why: answer.why }
  }

  async #requestPath(
    path: string,
    write: boolean,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<PermissionAnswer> {
    const access = write ? 'write' : 'read'
    const judged = (await askFor(this.#stateDir, { want: 'judge', access, path })) as Judged | null
    if (judged === null) return GIVEN
    for (const late = performance.now() + waitMs; ; ) {
      if (await this.#isGranted(path, write)) return GIVEN
      if (performance.now() >= late || signal?.aborted === true)
        return { granted: false, permission: judged.fix, why: judged.why }
      await new Promise(done => setTimeout(done, LOOK_MS))
    }
  }

  async #isGranted(path: string, write: boolean): Promise<boolean> {
    const { grants } = await this.#grants()
    return grants.some(
      grant => (path === grant.path || path.startsWith(`${grant.path}/`)) && (grant.write || !write),
    )
  }

  /** One look for all who wait: a model may ask for a thousand things at once. */
  #grants(): Promise<Granted> {
    if (this.#look === undefined) {
      const look = this.#pen.verb(['grants']) as Promise<Granted>
      this.#look = look
      const forget = (): void => {
        this.#look = undefined
      }
      look.then(() => setTimeout(forget, LOOK_MS / 2).unref(), forget)
    }
    return this.#look
  }

  async revoke(path: string): Promise<void> {
    checkValue('box.revoke()', 'the path', path, 'text')
    await this.#pen.verb(['revoke', resolve(path)])
    this.#look = undefined
  }
}

const GIVEN: PermissionAnswer = { granted: true, permission: null, why: null }

function lifeFlags({ session, once, always, for: ms }: AllowOptions): string[] {
  if (always === true) {
    if (session === true || once === true || ms !== undefined) throw usage('always has no end')
    return []
  }
  if (once !== true && ms === undefined) return ['--session']
  if (session === true) throw usage('session ends with the sandbox, and takes no other end')
  return [...(once === true ? ['--once'] : []), ...(ms === undefined ? [] : ['--for', duration(ms)])]
}

function duration(life: string | number): string {
  const text = typeof life === 'number' ? `${Math.ceil(life)}ms` : life
  if (!/^\d+(ms|s|m|h|d)$/.test(text))
    throw usage(`"${life}" is no time`, 'milliseconds, or a text such as "10m"')
  return text
}
