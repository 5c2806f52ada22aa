/** Changes what a running sandbox may do, by the same commands as the user: `pen allow`, `pen deny`, `pen grant`, `pen revoke`. */
import { resolve } from '../base/posix-path.ts'
import { MAX_ASK_MS, MAX_TARGET_LENGTH } from '../control/messages.ts'
import type { UserAnswer } from '../gateway/ask-user.ts'
import { checkOptions, checkValue, type Shape, usage } from './check-options.ts'
import type { SandboxContext } from './command.ts'
import { pathInside } from './exec-options.ts'
import type { PenProgram } from './pen-program.ts'
import { SandboxError } from './sandbox-error.ts'
import { judgeAccess, requestValue } from './supervisor-connection.ts'

/** How long the rule applies. Default: `session`. */
export interface AllowOptions {
  /** Until this sandbox ends. */
  readonly session?: boolean | undefined
  /** For the next connection to that host. */
  readonly once?: boolean | undefined
  /** For this long: `'10m'`, or milliseconds. */
  readonly for?: string | number | undefined
  /** Permanently, for every sandbox of the project. */
  readonly always?: boolean | undefined
}

export interface GrantOptions {
  /** Also allows writing. */
  readonly rw?: boolean | undefined
  /** For this long: `'10m'`, or milliseconds. Default: one hour. */
  readonly for?: string | number | undefined
}

export interface PermissionRequest {
  /** `host:port` to connect to. Give this or `path`. */
  readonly host?: string | undefined
  /** A file or directory on the host. */
  readonly path?: string | undefined
  /** Also asks for writing. */
  readonly rw?: boolean | undefined
}

export interface PermissionAnswer {
  readonly granted: boolean
  /** The command that grants it, for the user on the host. Null when it is granted or no command can grant it. */
  readonly permission: string | null
  /** Why it is not granted. */
  readonly why: string | null
}

export interface RequestOptions {
  /** How long to wait for the answer, in milliseconds: at most ten minutes. Default: 0. */
  readonly wait?: number | undefined
  readonly signal?: AbortSignal | undefined
}

const ALLOW_SHAPE: Shape<AllowOptions> = {
  session: 'boolean',
  once: 'boolean',
  for: 'time',
  always: 'boolean',
}

/** A supervisor reads its config four times a second. */
const IN_FORCE_MS = 5000
const POLL_MS = 500

interface GrantList {
  readonly grants: readonly { readonly path: string; readonly write: boolean }[]
}

/** @internal */
export class Permissions {
  readonly #pen: PenProgram
  readonly #context: SandboxContext
  /** Grants are the sandbox's own. */
  readonly #name: readonly string[]
  #list: Promise<GrantList> | undefined

  constructor(pen: PenProgram, context: SandboxContext) {
    this.#pen = pen
    this.#context = context
    const { name } = context.status
    this.#name = name === null ? [] : ['--name', name]
  }

  /** Returns when the rule is in force. */
  async setRule(verb: 'allow' | 'deny', target: string, options: AllowOptions): Promise<void> {
    checkValue(`box.${verb}()`, 'the host', target, 'text')
    checkOptions(`box.${verb}()`, options, ALLOW_SHAPE)
    const { tail, status } = this.#context
    if (status.gateway === null)
      throw new SandboxError('STATE', {
        what: `this sandbox has no network: ${status.network}`,
        retry: false,
        hint: 'start it without offline and with network.mode "gateway"',
      })
    if (target.startsWith('-'))
      throw usage(`"${target}" is not a host`, 'expected host:port, such as registry.example.com:443')
    const mark = tail.mark()
    await this.#pen.verb([verb, target, ...lifetimeFlags(options)])
    const seen = await tail.until(
      mark,
      ({ kind }) => kind === 'policy-changed' || kind === 'policy-edit-refused',
      IN_FORCE_MS,
    )
    if (seen?.kind === 'policy-changed') return
    throw new SandboxError('STATE', {
      what: `the rule for ${target} is not in force: ${seen === undefined ? 'the sandbox did not load it' : String(seen['reason'])}`,
      hint: 'pen logs',
    })
  }

  async grant(path: string, options: GrantOptions): Promise<void> {
    checkValue('box.grant()', 'the path', path, 'text')
    checkOptions('box.grant()', options, { rw: 'boolean', for: 'time' })
    const lifetime = duration(options.for ?? '1h')
    const access = options.rw === true ? ['--rw'] : []
    await this.#pen.verb(['grant', resolve(path), ...this.#name, ...access, '--for', lifetime])
    this.#list = undefined
  }

  /** Grants nothing: only the user does, by a command on the host. */
  async request(request: PermissionRequest, options: RequestOptions): Promise<PermissionAnswer> {
    checkOptions('box.requestPermission()', request, { host: 'text', path: 'text', rw: 'boolean' })
    checkOptions('box.requestPermission()', options, { wait: 'number', signal: 'signal' })
    const { wait = 0, signal } = options
    const waitMs = Math.min(Math.max(0, wait), MAX_ASK_MS)
    const { host, path = '', rw = false } = request
    if ((host === undefined) === (request.path === undefined))
      throw usage('give a host or a path', '{ host: "registry.example.com:443" }')
    return host === undefined
      ? await this.#requestPath(pathInside(path, this.#context.status.workspace), rw, waitMs, signal)
      : await this.#requestHost(host, waitMs)
  }

  async #requestHost(target: string, waitMs: number): Promise<PermissionAnswer> {
    if (target.length > MAX_TARGET_LENGTH)
      throw usage('the host is too long', 'expected host:port, such as registry.example.com:443')
    const { stateDir } = this.#context
    const answer = (await requestValue(stateDir, { want: 'ask', target, waitMs }, waitMs)) as UserAnswer
    if (answer.allowed) return GRANTED
    return { granted: false, permission: answer.fix, why: answer.why }
  }

  async #requestPath(
    path: string,
    write: boolean,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<PermissionAnswer> {
    const judged = await judgeAccess(this.#context.stateDir, write ? 'write' : 'read', path)
    if (judged === null) return GRANTED
    for (const deadline = performance.now() + waitMs; ; ) {
      if (await this.#isGranted(path, write)) return GRANTED
      if (performance.now() >= deadline || signal?.aborted === true)
        return { granted: false, permission: judged.fix, why: judged.why }
      await new Promise(done => setTimeout(done, POLL_MS))
    }
  }

  async #isGranted(path: string, write: boolean): Promise<boolean> {
    const { grants } = await this.#grants()
    return grants.some(
      grant => (path === grant.path || path.startsWith(`${grant.path}/`)) && (grant.write || !write),
    )
  }

  /** All requests share one listing: a model may make a thousand requests at once. */
  #grants(): Promise<GrantList> {
    if (this.#list === undefined) {
      const list = this.#pen.verb(['grants', ...this.#name]) as Promise<GrantList>
      this.#list = list
      const forget = (): void => {
        this.#list = undefined
      }
      list.then(() => setTimeout(forget, POLL_MS / 2).unref(), forget)
    }
    return this.#list
  }

  async revoke(path: string): Promise<void> {
    checkValue('box.revoke()', 'the path', path, 'text')
    await this.#pen.verb(['revoke', resolve(path), ...this.#name])
    this.#list = undefined
  }
}

const GRANTED: PermissionAnswer = { granted: true, permission: null, why: null }

function lifetimeFlags({ session, once, always, for: ms }: AllowOptions): string[] {
  if (always === true) {
    if (session === true || once === true || ms !== undefined)
      throw usage('always cannot be combined with session, once or for')
    return []
  }
  if (once !== true && ms === undefined) return ['--session']
  if (session === true) throw usage('session cannot be combined with once or for')
  return [...(once === true ? ['--once'] : []), ...(ms === undefined ? [] : ['--for', duration(ms)])]
}

function duration(value: string | number): string {
  const text = typeof value === 'number' ? `${Math.ceil(value)}ms` : value
  if (!/^\d+(ms|s|m|h|d)$/.test(text))
    throw usage(`"${value}" is not a duration`, 'expected milliseconds, or a string such as "10m"')
  return text
}
