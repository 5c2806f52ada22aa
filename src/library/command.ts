/** One command in a running sandbox. It has its own connection to the supervisor. Its result comes from there and from the audit. */
import type { AuditRecord } from '../audit/read.ts'
import type { ExecEnding, ExecOutput, Execution } from '../backend/backend.ts'
import { EXIT } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { executeOver } from '../control/execution.ts'
import type { SandboxStatus } from '../run/status.ts'
import { signalName } from '../terminal/signals.ts'
import type { AuditTail, TailRecord } from './audit-tail.ts'
import { usage } from './check-options.ts'
import { type Denial, denialOf, limitOf } from './denial.ts'
import { type CommandEnd, type CommandLine, orderOf, type SpawnOptions } from './exec-options.ts'
import { endedError } from './sandbox-error.ts'
import { judgeAccess, sendRequest } from './supervisor-connection.ts'

/** What commands, files and permissions need to know of their sandbox. */
export interface SandboxContext {
  readonly stateDir: string
  /** At the start. In a soft sandbox pen's gate refuses and records accesses, not the kernel. */
  readonly status: SandboxStatus
  readonly tail: AuditTail
}

interface CommandRequest extends Pick<SpawnOptions, 'env' | 'cwd' | 'signal'> {
  readonly command: CommandLine
  /** Null means no timeout. */
  readonly timeoutMs: number | null
  /** The hint of the error when the policy allows less. Without it, the command gets what the policy allows. */
  readonly tooLongHint?: string
}

const MAX_DENIALS = 100
/** A sandbox writes its last record after its last process has ended. */
const LAST_RECORD_MS = 5000

export class Command {
  readonly #context: SandboxContext
  readonly execution: Execution
  readonly #started: Started
  readonly #began = performance.now()
  /** The exit code or signal, as of a `ChildProcess`. The default is for a command that ended with its sandbox. */
  exitStatus: { readonly code: number | null; readonly signal: NodeJS.Signals | null } = {
    code: null,
    signal: 'SIGKILL',
  }
  /** Why the command did not start. The text comes from the sandbox, so it is escaped. */
  failure: string | undefined

  private constructor(context: SandboxContext, execution: Execution, started: Started) {
    this.#context = context
    this.execution = execution
    this.#started = started
    started.signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  static async begin(context: SandboxContext, request: CommandRequest, output: ExecOutput): Promise<Command> {
    const { signal } = request
    signal?.throwIfAborted()
    const order = orderOf(request.command, request, context.status.workspace)
    const mark = context.tail.mark()
    const reply = await sendRequest(context.stateDir, { want: 'exec', timeoutMs: request.timeoutMs })
    const { timeoutMs, execution: number } = reply.value as { timeoutMs: number | null; execution: number }
    if (request.tooLongHint !== undefined && timeoutMs !== null && timeoutMs < (request.timeoutMs ?? 0)) {
      reply.socket.destroy()
      const what = `a timeout of ${request.timeoutMs} ms is above exec.ceiling of the policy (${timeoutMs} ms)`
      throw usage(what, request.tooLongHint)
    }
    const execution = executeOver(reply, order, output)
    const started = { program: order.argv[0] ?? '', number, timeoutMs, mark, signal }
    const command = new Command(context, execution, started)
    if (signal?.aborted === true) execution.kill()
    return command
  }

  /** Resolves after the last byte of output. */
  async ended(): Promise<CommandEnd> {
    try {
      return await this.#outcome(await this.execution.ended)
    } finally {
      this.#started.signal?.removeEventListener('abort', this.#onAbort)
    }
  }

  readonly #onAbort = (): void => this.execution.kill()

  async #outcome(ending: ExecEnding): Promise<CommandEnd> {
    const { signal } = this.#started
    if (signal?.aborted === true) throw signal.reason
    // The command did not end by itself: the sandbox was stopped.
    if (this.#endRecord()?.['reason'] === 'stop') throw endedError('it was stopped')
    switch (ending.kind) {
      case 'exit':
        return this.#end(ending.code, this.#isTimeout(ending.code))
      case 'signal':
        return this.#end(128 + ending.signal, false, signalName(ending.signal) ?? 'SIGKILL')
      case 'not-started':
        this.failure = printable(ending.reason ?? `the command did not start (${ending.errno})`)
        if (!this.#context.status.soft)
          await judgeAccess(this.#context.stateDir, 'exec', this.#started.program)
        return this.#end(ending.errno === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable, false)
      case 'lost': {
        // The sandbox has ended. A limit is a result; any other end is an error.
        const { tail } = this.#context
        await tail.until(this.#started.mark, ({ kind }) => kind === 'run-end', LAST_RECORD_MS)
        const end = this.#end(128 + 9, false, 'SIGKILL')
        if (end.limit !== null) return end
        throw endedError('before the command did')
      }
    }
  }

  #end(exitCode: number, timedOut: boolean, signal: NodeJS.Signals | null = null): CommandEnd {
    this.exitStatus = { code: signal === null ? exitCode : null, signal }
    const records = this.#context.tail.since(this.#started.mark)
    const denials = records.flatMap(found => this.#denial(found) ?? [])
    const hits = records.flatMap(({ record }) => limitOf(record) ?? [])
    return {
      exitCode,
      timedOut,
      limit: hits.find(({ reason }) => reason !== 'throttled') ?? null,
      denials: denials.slice(-MAX_DENIALS),
      moreDenials: Math.max(0, denials.length - MAX_DENIALS) + this.#context.tail.dropped(this.#started.mark),
    }
  }

  /** Undefined when the denial belongs to another command. */
  #denial({ record, running }: TailRecord): Denial | undefined {
    const { execution } = record
    if (typeof execution === 'number') {
      return execution === this.#started.number ? denialOf(record, 'command') : undefined
    }
    const others = running.filter(number => number !== this.#started.number)
    return denialOf(record, others.length === 0 ? 'command' : 'unknown')
  }

  /** A command can also exit with this code itself, so the audit decides. */
  #isTimeout(code: number): boolean {
    if (code !== EXIT.timeout) return false
    const record = this.#endRecord()
    if (record === undefined) return performance.now() - this.#began >= (this.#started.timeoutMs ?? Infinity)
    return record['reason'] === 'timeout'
  }

  /** The supervisor's record of the end. It is written before the client is notified. */
  #endRecord(): AuditRecord | undefined {
    return this.#context.tail
      .since(this.#started.mark)
      .find(({ record: { kind, execution } }) => kind === 'exec-end' && execution === this.#started.number)
      ?.record
  }
}

interface Started {
  readonly program: string
  readonly number: number
  readonly timeoutMs: number | null
  readonly mark: number
  readonly signal: AbortSignal | undefined
}
