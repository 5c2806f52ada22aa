/** One command in a sandbox that runs already: begun over a connection of its own, and told by what the supervisor says of it. */
import type { AuditRecord } from '../audit/read.ts'
import type { ExecEnding, ExecOutput, Execution } from '../backend/backend.ts'
import { EXIT } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { executeOver } from '../control/execution.ts'
import { signalName } from '../terminal/signals.ts'
import type { AuditTail, Kept } from './audit-tail.ts'
import { usage } from './check-options.ts'
import { type Denial, denialOf, limitOf } from './denial.ts'
import { type CommandEnd, type CommandLine, orderOf, type SpawnOptions } from './exec-options.ts'
import { endedError } from './sandbox-error.ts'
import { askFor, askSupervisor } from './supervisor-connection.ts'

/** A sandbox, as its commands see it. */
export interface Surroundings {
  readonly stateDir: string
  readonly workspace: string
  readonly exec: { readonly timeout: number; readonly maxOutput: number }
  readonly tail: AuditTail
  /** No kernel says no here, but pen's own gate: it has recorded that, and its words are the supervisor's. */
  readonly gated: boolean
}

export interface Wanted extends Pick<SpawnOptions, 'env' | 'cwd' | 'signal'> {
  readonly command: CommandLine
  /** Null: it may take its time. */
  readonly timeoutMs: number | null
  /** What to do when the policy allows less: without it, the command has less. */
  readonly tooLong?: string
}

const MOST_DENIALS = 100
/** A sandbox that ends writes its last record when everything is gone. */
const LAST_WORDS_MS = 5000

export class Command {
  readonly #inside: Surroundings
  readonly #execution: Execution
  readonly #program: string
  readonly #number: number
  readonly #timeoutMs: number | null
  readonly #mark: number
  readonly #began = performance.now()
  readonly #signal: AbortSignal | undefined
  /** As a `ChildProcess` would tell it. One whose sandbox ended was killed with it. */
  how: { readonly code: number | null; readonly signal: NodeJS.Signals | null } = {
    code: null,
    signal: 'SIGKILL',
  }
  /** Why it could not be started, in the sandbox's own words: hostile, so escaped. */
  failure: string | undefined

  private constructor(inside: Surroundings, begun: Begun, signal: AbortSignal | undefined) {
    this.#inside = inside
    this.#execution = begun.execution
    this.#program = begun.program
    this.#number = begun.number
    this.#timeoutMs = begun.timeoutMs
    this.#mark = begun.mark
    this.#signal = signal
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  static async begin(inside: Surroundings, wanted: Wanted, output: ExecOutput): Promise<Command> {
    const { signal } = wanted
    signal?.throwIfAborted()
    const order = orderOf(wanted.command, wanted, inside.workspace)
    const mark = inside.tail.mark()
    const request = { want: 'exec', timeoutMs: wanted.timeoutMs } as const
    const { socket, value } = await askSupervisor(inside.stateDir, request)
    const { timeoutMs, execution: number } = value as { timeoutMs: number | null; execution: number }
    if (wanted.tooLong !== undefined && timeoutMs !== null && timeoutMs < (wanted.timeoutMs ?? 0)) {
      socket.destroy()
      const what = `a timeout of ${wanted.timeoutMs} ms is above exec.ceiling of the policy, ${timeoutMs} ms`
      throw usage(what, wanted.tooLong)
    }
    const execution = executeOver({ socket, rest: NOTHING }, order, output)
    const begun = { execution, program: order.argv[0] ?? '', number, timeoutMs, mark }
    const started = new Command(inside, begun, signal)
    if (signal?.aborted === true) execution.kill()
    return started
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#execution.write(bytes)
  }

  endInput(): void {
    this.#execution.endInput()
  }

  sendSignal(name: NodeJS.Signals): void {
    this.#execution.signal(name)
  }

  kill(): void {
    this.#execution.kill()
  }

  /** After the last byte of output. */
  async ended(): Promise<CommandEnd> {
    try {
      return await this.#outcome(await this.#execution.ended)
    } finally {
      this.#signal?.removeEventListener('abort', this.#onAbort)
    }
  }

  readonly #onAbort = (): void => this.#execution.kill()

  async #outcome(ending: ExecEnding): Promise<CommandEnd> {
    if (this.#signal?.aborted === true) throw this.#signal.reason
    // The command did not end by itself: whoever stopped the sandbox ended it.
    if (this.#record()?.['reason'] === 'stop') throw endedError('it was stopped')
    switch (ending.kind) {
      case 'exit':
        return this.#end(ending.code, this.#isTimeout(ending.code))
      case 'signal':
        return this.#end(128 + ending.signal, false, signalName(ending.signal) ?? 'SIGKILL')
      case 'not-started':
        this.failure = printable(ending.reason ?? `could not be started (${ending.errno})`)
        if (!this.#inside.gated)
          await askFor(this.#inside.stateDir, { want: 'judge', access: 'exec', path: this.#program })
        return this.#end(ending.errno === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable, false)
      case 'lost': {
        // The sandbox itself is over: by a limit, which is an answer, or because somebody ended it, which is none.
        const { tail } = this.#inside
        await tail.until(this.#mark, ({ kind }) => kind === 'run-end', LAST_WORDS_MS)
        const end = this.#end(128 + 9, false, 'SIGKILL')
        if (end.limit !== null) return end
        throw endedError('before the command did')
      }
    }
  }

  #end(exitCode: number, timedOut: boolean, signal: NodeJS.Signals | null = null): CommandEnd {
    this.how = { code: signal === null ? exitCode : null, signal }
    const records = this.#inside.tail.since(this.#mark)
    const hits = records.flatMap(({ record }) => limitOf(record) ?? [])
    return {
      exitCode,
      timedOut,
      limit: hits.find(({ reason }) => reason !== 'throttled') ?? null,
      denials: records.flatMap(found => this.#denial(found) ?? []).slice(-MOST_DENIALS),
    }
  }

  /** Undefined for what another command was refused. */
  #denial({ record, running }: Kept): Denial | undefined {
    const { execution } = record
    if (typeof execution === 'number') {
      return execution === this.#number ? denialOf(record, 'command') : undefined
    }
    const others = running.filter(number => number !== this.#number)
    return denialOf(record, others.length === 0 ? 'command' : 'unknown')
  }

  /** A command may end with this very code by itself: the audit tells which. */
  #isTimeout(code: number): boolean {
    if (code !== EXIT.timeout) return false
    const record = this.#record()
    if (record === undefined) return performance.now() - this.#began >= (this.#timeoutMs ?? Infinity)
    return record['reason'] === 'timeout'
  }

  /** What the supervisor says of its end: written before the command's own side hears of it. */
  #record(): AuditRecord | undefined {
    return this.#inside.tail
      .since(this.#mark)
      .find(({ record: { kind, execution } }) => kind === 'exec-end' && execution === this.#number)?.record
  }
}

interface Begun {
  readonly execution: Execution
  readonly program: string
  readonly number: number
  readonly timeoutMs: number | null
  readonly mark: number
}

const NOTHING = new Uint8Array()
