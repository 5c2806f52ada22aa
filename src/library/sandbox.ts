/** A sandbox as a value: started, used as often as one likes, and gone when it goes out of scope. */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { resolve } from '../base/posix-path.ts'
import { asPenError } from '../control/messages.ts'
import type { StartAnswer } from '../lifecycle/start-for-program.ts'
import type { SandboxStatus } from '../run/status.ts'
import { AuditTail } from './audit-tail.ts'
import { CapturedOutput } from './captured-output.ts'
import { checkOptions, checkValue, type Shape, usage } from './check-options.ts'
import { Command, type Surroundings } from './command.ts'
import { type Ask, askOf, type Denial, denialOf, type LimitHit, limitOf } from './denial.ts'
import { EventListeners } from './event-listeners.ts'
import {
  bytesOf,
  type CommandLine,
  EXEC_SHAPE,
  type ExecOptions,
  type ExecResult,
  SPAWN_SHAPE,
  type SpawnOptions,
  timeoutOf,
  toBytes,
} from './exec-options.ts'
import { SandboxFiles } from './files.ts'
import { ForwardedPort, type ForwardOptions } from './forwarded-port.ts'
import { OutputListener } from './output-listener.ts'
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
import { askSupervisor, type SupervisorConnection } from './supervisor-connection.ts'

export interface StartOptions {
  /** The directory that the sandbox works in. It has the same path inside. */
  readonly project: string
  /** On top of the user's own config, as flags of `pen start` are. It may grant: it is this program's word. */
  readonly policy?: PolicyDocument | undefined
  /** How strong the wall must be; nothing weaker is taken, and `'soft'` only by this name. */
  readonly isolation?: PolicyDocument['isolation'] | undefined
  /** One engine by name; otherwise the policy chooses. */
  readonly backend?: BackendName | undefined
  /** No network, whatever else grants it. */
  readonly offline?: boolean | undefined
  /** The pen binary; otherwise the one that comes with the library. */
  readonly pen?: string | undefined
}

export interface SandboxEvents {
  denial: [denial: Denial]
  limit: [limit: LimitHit]
  /** A connection waits for the user's answer: see `network.ask`. */
  ask: [ask: Ask]
  /** It is over, whoever ended it. */
  end: []
  /** A listener of the others threw this, or its promise was broken. Unheard, it is an uncaught exception of your program. */
  error: [error: unknown]
}

const START_SHAPE: Shape<StartOptions> = {
  project: 'text',
  policy: 'object',
  isolation: 'text',
  backend: 'text',
  offline: 'boolean',
  pen: 'text',
}

const EVENTS = ['denial', 'limit', 'ask', 'end', 'error'] as const
const STOP_MS = 15_000

export class Sandbox implements AsyncDisposable {
  /** Where it works: the canonical path of the project. */
  readonly project: string
  readonly id: string
  readonly backend: string
  readonly isolation: string
  /** True when it ran already: then it is not this program's, and goes on when this program is done with it. */
  readonly joined: boolean
  /** What pen had to say at the start, one line each: what is weaker here, and which gaps were accepted. */
  readonly notes: readonly string[]
  readonly files: SandboxFiles

  readonly #inside: Surroundings
  readonly #pen: PenProgram
  readonly #permissions: Permissions
  readonly #events = new EventListeners<SandboxEvents>(EVENTS)
  readonly #life: SupervisorConnection | undefined
  readonly #forget: () => void
  #isOver: boolean = false

  private constructor(started: Started, pen: PenProgram, life: SupervisorConnection | undefined) {
    const { status, stateDir } = started
    this.project = status.workspace
    this.id = status.id
    this.backend = status.backend
    this.isolation = status.isolation
    this.joined = !started.started
    this.notes = started.notes
    this.#pen = pen
    this.#life = life
    const tail = new AuditTail(stateDir, status.run)
    this.#inside = {
      stateDir,
      workspace: status.workspace,
      exec: status.exec,
      tail,
      gated: status.soft,
    }
    this.files = new SandboxFiles(this.#inside)
    this.#permissions = new Permissions(pen, this.#inside, status)
    this.#forget = tail.listen(record => {
      const [denial, limit, ask] = [denialOf(record), limitOf(record), askOf(record)]
      if (denial !== undefined) this.#events.emit('denial', denial)
      if (limit !== undefined) this.#events.emit('limit', limit)
      if (ask !== undefined) this.#events.emit('ask', ask)
      if (record.kind === 'run-end') this.#end()
    })
    life?.attach({ data: () => undefined, closed: () => this.#end() })
  }

  /** Starts the sandbox of a project, or joins the one that runs, if that has the same policy or none was asked for. */
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
    const answer = (await pen.ask('__start', {
      policy,
      offline: options.offline === true,
      allowUserExpansion: false,
    })) as StartAnswer
    if (!answer.ok) throw asSandboxError(asPenError(answer.error))
    // One that this program started ends with it, also when the program is killed.
    const life = answer.started ? (await askSupervisor(answer.stateDir, { want: 'own' })).socket : undefined
    life?.unref()
    return new Sandbox(answer, pen, life)
  }

  /** Runs a command to its end. Words are not read by a shell; a text is a line for the sandbox's own. */
  async exec(command: CommandLine, options: ExecOptions = {}): Promise<ExecResult> {
    checkOptions('box.exec()', options, EXEC_SHAPE)
    const most = bytesOf(options.maxOutput, this.#inside.exec.maxOutput)
    const kept = { stdout: new CapturedOutput(most), stderr: new CapturedOutput(most) }
    const listener = new OutputListener(options.onOutput)
    const timeoutMs = timeoutOf(options.timeout, this.#inside.exec.timeout)
    const wanted = {
      ...options,
      command,
      timeoutMs,
      ...(options.timeout !== undefined && { tooLong: 'ask for less, or raise exec.ceiling in the policy' }),
    }
    const begun = await Command.begin(this.#inside, wanted, (stream, bytes) => {
      kept[stream].push(bytes)
      return listener.hear(stream, bytes)
    })
    void listener.failed.then(() => begun.kill())
    if (options.stdin !== undefined) void begun.write(toBytes(options.stdin))
    begun.endInput()
    const end = await begun.ended()
    listener.throwIfFailed()
    return {
      ...end,
      stdout: kept.stdout.text(),
      stderr: begun.failure === undefined ? kept.stderr.text() : `pen: ${begun.failure}\n`,
      truncated: kept.stdout.truncated || kept.stderr.truncated,
    }
  }

  /** Starts a command whose output is read as it comes, and whose input stays open. */
  async spawn(command: CommandLine, options: SpawnOptions = {}): Promise<RunningCommand> {
    checkOptions('box.spawn()', options, SPAWN_SHAPE)
    const most = bytesOf(options.maxOutput, this.#inside.exec.maxOutput)
    const timeoutMs = options.timeout === undefined ? null : timeoutOf(options.timeout, 0)
    const wanted = { ...options, command, timeoutMs, tooLong: 'leave it out: spawn() needs no timeout' }
    return RunningCommand.begin(most, output => Command.begin(this.#inside, wanted, output))
  }

  /** Lets this user's programs on this machine reach a server that listens on that port in the sandbox, until it is closed. */
  forward(port: number, options: ForwardOptions = {}): Promise<ForwardedPort> {
    return ForwardedPort.open(this.#inside.stateDir, port, options)
  }

  /** Lets the sandbox connect to `host:port`, until it ends unless something else is said. In force when it returns. */
  allow(target: string, options: AllowOptions = {}): Promise<void> {
    return this.#permissions.say('allow', target, options)
  }

  /** Refuses `host:port` to it, whatever else allows it, until it ends unless something else is said. In force when it returns. */
  deny(target: string, options: AllowOptions = {}): Promise<void> {
    return this.#permissions.say('deny', target, options)
  }

  /** Lets the sandbox ask for a file or directory of the host, for an hour unless something else is said: see `files`. */
  grant(path: string, options: GrantOptions = {}): Promise<void> {
    return this.#permissions.grant(path, options)
  }

  /**
   * For a model that lacks something: asks the user, and grants nothing. The user answers in `pen watch`, where the policy lets
   * connections be held, or by the command that the answer names.
   */
  requestPermission(wanted: PermissionRequest, options: RequestOptions = {}): Promise<PermissionAnswer> {
    return this.#permissions.request(wanted, options)
  }

  /** Takes a grant back. Transfers end at once. */
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

  /** Ends it, whoever started it. When this returns, every process of it is gone, and the audit is complete. */
  async stop(): Promise<void> {
    if (this.#isOver) return
    try {
      const { socket } = await askSupervisor(this.#inside.stateDir, { want: 'stop' })
      await closed(socket)
      await supervisorGone(this.#inside.stateDir)
    } catch (error) {
      // One that does not answer is ended by force; one that is gone is what was wanted.
      if (!(error instanceof SandboxError) || error.code !== 'ENDED') await this.#pen.verb(['stop'])
    }
    this.#end()
  }

  /** Ends it where this program started it, and leaves it alone where it was joined. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.joined) this.#end()
    else await this.stop()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    // What led to it is told before it.
    this.#inside.tail.lookQuietly()
    this.#forget()
    this.#life?.destroy()
    this.#events.emit('end')
  }
}

type Started = Extract<StartAnswer, { ok: true }> & { readonly status: SandboxStatus }

function directory(path: string): string {
  try {
    const real = realpathSync(resolve(path))
    if (statSync(real).isDirectory()) return real
  } catch {
    // Told below.
  }
  throw usage(`there is no directory ${path}`, 'name the directory of one project')
}

const GONE_MS = 2000
const LOOK_MS = 5

/** Its record is the last that a supervisor takes away. */
async function supervisorGone(stateDir: string): Promise<void> {
  for (const late = performance.now() + GONE_MS; performance.now() < late; ) {
    if (!existsSync(`${stateDir}/supervisor.json`)) return
    await new Promise(done => setTimeout(done, LOOK_MS))
  }
}

function closed(socket: SupervisorConnection): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new SandboxError('STATE', { what: 'the sandbox does not end' })),
      STOP_MS,
    )
    const done = (): void => {
      clearTimeout(late)
      resolve()
    }
    socket.attach({ data: () => undefined, closed: done })
  })
}
