/** A sandbox as a value: it starts, runs commands, and ends when it goes out of scope. */
import { realpathSync, statSync } from 'node:fs'
import { resolve } from '../base/posix-path.ts'
import { asPenError } from '../control/messages.ts'
import type { StartAnswer } from '../lifecycle/start-for-program.ts'
import type { SandboxStatus } from '../run/status.ts'
import { AuditTail } from './audit-tail.ts'
import { captureStreams, resultOf } from './captured-output.ts'
import { checkOptions, checkValue, type Shape, usage } from './check-options.ts'
import { Command, type SandboxContext } from './command.ts'
import { type Ask, askOf, type Denial, denialOf, type LimitHit, limitOf } from './denial.ts'
import { EventListeners } from './event-listeners.ts'
import {
  type CommandLine,
  EXEC_SHAPE,
  type ExecOptions,
  type ExecResult,
  maxOutputOf,
  SPAWN_SHAPE,
  type SpawnOptions,
  timeoutOf,
  toBytes,
} from './exec-options.ts'
import { SandboxFiles } from './files.ts'
import { ForwardedPort, type ForwardOptions } from './forwarded-port.ts'
import { PenProgram } from './pen-program.ts'
import {
  type AllowOptions,
  type GrantOptions,
  type PermissionAnswer,
  type PermissionRequest,
  Permissions,
  type RequestOptions,
} from './permissions.ts'
import type { BackendName, PolicyDocument } from './policy-document.ts'
import { RunningCommand } from './running-command.ts'
import { asSandboxError, SandboxError } from './sandbox-error.ts'
import { type SupervisorConnection, sendRequest, stopSupervisor } from './supervisor-connection.ts'

export interface StartOptions {
  /** The project directory. It has the same path inside. */
  readonly project: string
  /** The name of the sandbox: a project can have several at once. Default: the one without a name. */
  readonly name?: string | undefined
  /** Added to the user's config, like the flags of `pen start`. It may grant, because the program is trusted. */
  readonly policy?: PolicyDocument | undefined
  /** Minimum isolation; pen never falls back to a weaker one. `'soft'` is used only when it is named here. */
  readonly isolation?: PolicyDocument['isolation'] | undefined
  /** A backend by name. Default: the policy chooses. */
  readonly backend?: BackendName | undefined
  /** Turns the network off, whatever else grants it. */
  readonly offline?: boolean | undefined
  /** The absolute path of the pen binary. Default: the one in the library's package. */
  readonly pen?: string | undefined
}

export interface SandboxEvents {
  denial: [denial: Denial]
  limit: [limit: LimitHit]
  /** A connection waits for the user's answer: see `network.ask`. */
  ask: [ask: Ask]
  /** The sandbox has ended. */
  end: []
  /** A listener threw this, or its promise was rejected. Without an `error` listener it is an uncaught exception. */
  error: [error: unknown]
}

const START_SHAPE: Shape<StartOptions> = {
  project: 'text',
  name: 'text',
  policy: 'object',
  isolation: 'text',
  backend: 'text',
  offline: 'boolean',
  pen: 'text',
}

const EVENTS = ['denial', 'limit', 'ask', 'end', 'error'] as const

export class Sandbox implements AsyncDisposable {
  /** The canonical path of the project. */
  readonly project: string
  readonly id: string
  readonly backend: string
  readonly isolation: string
  /** True when the sandbox was already running. It then continues after this program. */
  readonly joined: boolean
  /** pen's messages at the start, one per line: what is weaker here, and which gaps were accepted. */
  readonly notes: readonly string[]
  readonly files: SandboxFiles

  readonly #context: SandboxContext
  readonly #pen: PenProgram
  readonly #permissions: Permissions
  readonly #events = new EventListeners<SandboxEvents>(EVENTS)
  readonly #ownership: SupervisorConnection | undefined
  #isOver: boolean = false

  private constructor(started: Started, pen: PenProgram, ownership: SupervisorConnection | undefined) {
    const { status, stateDir } = started
    this.project = status.workspace
    this.id = status.id
    this.backend = status.backend
    this.isolation = status.isolation
    this.joined = !started.started
    this.notes = started.notes
    this.#pen = pen
    this.#ownership = ownership
    const tail = new AuditTail(stateDir, status.run)
    this.#context = { stateDir, status, tail }
    this.files = new SandboxFiles(this.#context)
    this.#permissions = new Permissions(pen, this.#context)
    tail.listen(record => {
      const [denial, limit, ask] = [denialOf(record), limitOf(record), askOf(record)]
      if (denial !== undefined) this.#events.emit('denial', denial)
      if (limit !== undefined) this.#events.emit('limit', limit)
      if (ask !== undefined) this.#events.emit('ask', ask)
      if (record.kind === 'run-end') this.#end()
    })
    void ownership?.closed().then(() => this.#end())
  }

  /** Starts the sandbox of a project. Joins a running one that has the same policy, or when no policy is given. */
  static async start(options: StartOptions): Promise<Sandbox> {
    checkOptions('Sandbox.start()', options, START_SHAPE)
    checkValue('Sandbox.start()', 'the option project', options.project, 'text')
    const project = directory(options.project)
    const pen = new PenProgram(options.pen, project)
    const policy = {
      ...options.policy,
      ...(options.isolation !== undefined && { isolation: options.isolation }),
      ...(options.backend !== undefined && { backend: options.backend }),
    }
    const order = { policy, offline: options.offline === true, name: options.name }
    const answer = (await pen.ask('__start', order)) as StartAnswer
    if (!answer.ok) throw asSandboxError(asPenError(answer.error))
    // The sandbox ends with this program, also when the program is killed.
    const ownership = answer.started
      ? (await sendRequest(answer.stateDir, { want: 'own' })).socket
      : undefined
    ownership?.unref()
    return new Sandbox(answer, pen, ownership)
  }

  /** Runs a command to its end. A string goes to `/bin/sh` in the sandbox; an array bypasses the shell. */
  async exec(command: CommandLine, options: ExecOptions = {}): Promise<ExecResult> {
    checkOptions('box.exec()', options, EXEC_SHAPE)
    const captured = captureStreams(maxOutputOf(options.maxOutput, this.#context.status.exec.maxOutput))
    const timeoutMs = timeoutOf(options.timeout, this.#context.status.exec.timeout)
    const request = {
      ...options,
      command,
      timeoutMs,
      ...(options.timeout !== undefined && {
        tooLongHint: 'use a shorter timeout, or raise exec.ceiling in the policy',
      }),
    }
    const failures: unknown[] = []
    const deliver = async (stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> => {
      try {
        await options.onOutput?.(stream, bytes)
      } catch (error) {
        failures.push(error)
        running.execution.kill()
      }
    }
    const running = await Command.begin(this.#context, request, (stream, bytes) => {
      captured[stream].push(bytes)
      return options.onOutput === undefined || failures.length > 0 ? undefined : deliver(stream, bytes)
    })
    if (options.stdin !== undefined) void running.execution.write(toBytes(options.stdin))
    running.execution.endInput()
    const end = await running.ended()
    if (failures.length > 0) throw failures[0]
    return resultOf(end, captured, running.failure)
  }

  /** Starts a command. Its output is read while it runs, and its input stays open. */
  async spawn(command: CommandLine, options: SpawnOptions = {}): Promise<RunningCommand> {
    checkOptions('box.spawn()', options, SPAWN_SHAPE)
    const maxOutput = maxOutputOf(options.maxOutput, this.#context.status.exec.maxOutput)
    const timeoutMs = options.timeout === undefined ? null : timeoutOf(options.timeout, 0)
    const request = { ...options, command, timeoutMs, tooLongHint: 'remove it: spawn() needs no timeout' }
    return RunningCommand.begin(maxOutput, output => Command.begin(this.#context, request, output))
  }

  /** Forwards a port of the sandbox to this machine, for programs of this user, until it is closed. */
  forward(port: number, options: ForwardOptions = {}): Promise<ForwardedPort> {
    return ForwardedPort.open(this.#context.stateDir, port, options)
  }

  /** Allows connections to `host:port`, by default until the sandbox ends. The rule is in force when it returns. */
  allow(target: string, options: AllowOptions = {}): Promise<void> {
    return this.#permissions.setRule('allow', target, options)
  }

  /** Denies `host:port`, whatever else allows it. Lifetime and effect are as for `allow`. */
  deny(target: string, options: AllowOptions = {}): Promise<void> {
    return this.#permissions.setRule('deny', target, options)
  }

  /** Grants a file or directory of the host, by default for one hour. `files` then reads it by its host path. */
  grant(path: string, options: GrantOptions = {}): Promise<void> {
    return this.#permissions.grant(path, options)
  }

  /**
   * Asks the user for a permission, and grants nothing itself: safe to give to a model. The user answers in `pen watch`, if the
   * policy holds connections, or runs the command in the answer.
   */
  requestPermission(request: PermissionRequest, options: RequestOptions = {}): Promise<PermissionAnswer> {
    return this.#permissions.request(request, options)
  }

  /** Revokes a grant. Running transfers end at once. */
  revoke(path: string): Promise<void> {
    return this.#permissions.revoke(path)
  }

  on<E extends keyof SandboxEvents>(
    event: E,
    listener: (...values: SandboxEvents[E]) => void | Promise<void>,
  ): this {
    this.#events.add(event, listener)
    return this
  }

  off<E extends keyof SandboxEvents>(
    event: E,
    listener: (...values: SandboxEvents[E]) => void | Promise<void>,
  ): this {
    this.#events.remove(event, listener)
    return this
  }

  /** Stops the sandbox, also one that was joined. When this returns, every process has ended and the audit is complete. */
  async stop(): Promise<void> {
    if (this.#isOver) return
    try {
      await stopSupervisor(this.#context.stateDir)
    } catch (error) {
      // ENDED is success. `pen stop` kills a supervisor that does not answer.
      if (!(error instanceof SandboxError) || error.code !== 'ENDED') await this.#pen.verb(['stop'])
    }
    this.#end()
  }

  /** Stops a sandbox that this program started. A joined one keeps running. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.joined) this.#end()
    else await this.stop()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    // Emit the last records before `end`.
    this.#context.tail.pollQuietly()
    this.#context.tail.close()
    this.#ownership?.destroy()
    this.#events.emit('end')
  }
}

type Started = Extract<StartAnswer, { ok: true }> & { readonly status: SandboxStatus }

function directory(path: string): string {
  try {
    const real = realpathSync(resolve(path))
    if (statSync(real).isDirectory()) return real
  } catch {
    // Throws below.
  }
  throw usage(`${path} is not a directory`, 'give the directory of one project')
}
