/**
 * One command of a client, between the client's connection and the sandbox. A reader that stops holds up its own stream and nothing
 * else. At most two windows of bytes are buffered.
 */
import type { AuditSink } from '../audit/event.ts'
import { shortCommand } from '../audit/line.ts'
import type { ExecEnding, ExecOrder, Execution, Running } from '../backend/backend.ts'
import { EXIT, PenError } from '../base/error.ts'
import { CHANNEL } from '../control/messages.ts'
import { encodeReport, type Order, OrderReader, type Report, type Stream } from '../protocol/exec-messages.ts'
import { protocolError } from '../protocol/frame.ts'
import { Allowance } from '../protocol/window.ts'
import { signalName } from '../terminal/signals.ts'
import { Outlet } from './outlet.ts'

/** From SIGTERM to SIGKILL. With the exec daemon's own work an end stays within two seconds. */
const GRACE_MS = 1000
/** From SIGKILL to the command's end. The exec daemon may be hostile: if it does not end the command, the sandbox ends. */
const UNHEARD_MS = 5000

export interface RelayOptions {
  readonly exec: NonNullable<Running['exec']>
  /** Throws the reason when the command may not start. */
  readonly judge?: (order: ExecOrder) => void
  readonly audit: AuditSink
  /** The number of this command in its sandbox, for the audit. */
  readonly number: number
  readonly timeoutMs: number | null
  /** Called when the command was killed. A limit may be the reason, and is reported first. */
  readonly killed: () => void
  /** The exec daemon did not end the command: end the sandbox. */
  readonly unheard: () => void
  readonly unheardMs?: number
  /** The sandbox is paused for a copy: its exec daemon gets the time again. */
  readonly isCopied: () => boolean
  readonly send: (bytes: Uint8Array) => void
  /** Called after the last report, or without one when the sandbox ended first. */
  readonly done: (isTold: boolean) => void
}

export class ExecRelay {
  readonly #options: RelayOptions
  readonly #orders = new OrderReader()
  readonly #outputs: Record<Stream, Outlet> = { stdout: new Outlet('stdout'), stderr: new Outlet('stderr') }
  readonly #input = new Allowance()
  readonly #began = Date.now()
  #writing: Promise<void> = Promise.resolve()
  #execution: Execution | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #last: ReturnType<typeof setTimeout> | undefined
  #why: 'timeout' | 'client' | 'stop' | undefined
  readonly #over = Promise.withResolvers<void>()
  #isStarted: boolean = false
  #isOver: boolean = false

  constructor(options: RelayOptions) {
    this.#options = options
  }

  /** Throws at the first byte that breaks the protocol. The client is then disconnected. */
  push(bytes: Uint8Array): void {
    for (const order of this.#orders.push(bytes)) this.#take(order)
  }

  /** The client disconnected: end the command. */
  clientGone(): void {
    for (const outlet of Object.values(this.#outputs)) outlet.drop()
    this.#finish('client', 'SIGHUP')
  }

  /** Resolves when the command has ended, or never began. */
  get over(): Promise<void> {
    return this.#execution === undefined ? Promise.resolve() : this.#over.promise
  }

  stop(): void {
    this.#finish('stop', 'SIGTERM')
  }

  #take(order: Order): void {
    if (!('channel' in order) || order.channel !== CHANNEL) throw protocolError('an order for another')
    // Messages that arrive after the command's end are ignored.
    if (this.#isOver) return
    if (order.kind === 'exec') this.#begin(order.order)
    else if (this.#execution === undefined) throw protocolError('an order before its command')
    else this.#pass(order, this.#execution)
  }

  #pass(order: Order, execution: Execution): void {
    switch (order.kind) {
      case 'configure':
      case 'exec':
      case 'connect':
      case 'accept':
        throw protocolError('an order that is not for a command that runs')
      case 'stdin':
        this.#write(execution, order.bytes.slice())
        break
      case 'stdin-end':
        this.#writing = this.#writing.then(() => execution.endInput())
        break
      case 'resize':
        execution.resize(order.columns, order.rows)
        break
      case 'signal':
        execution.signal(wanted(order.signal))
        break
      case 'window':
        this.#outputs[order.stream].grant(order.bytes, report => this.#report(report))
        break
      case 'end':
        this.#kill(execution)
        break
    }
  }

  #begin(order: ExecOrder): void {
    if (this.#execution !== undefined) throw protocolError('a second command')
    const { exec, timeoutMs, done } = this.#options
    const failure = this.#whyNot(order)
    if (failure !== undefined) {
      this.#isOver = true
      this.#report({ kind: 'failed', channel: CHANNEL, ...failure })
      done(true)
      return
    }
    const execution = exec(order, (stream, bytes) =>
      this.#outputs[stream].put(bytes, report => this.#report(report)),
    )
    this.#execution = execution
    if (timeoutMs !== null) this.#timer = setTimeout(() => this.#finish('timeout', 'SIGTERM'), timeoutMs)
    void execution.ended.then(
      ending => this.#end(ending),
      () => this.#end({ kind: 'lost' }),
    )
  }

  /** Undefined when the command may start. Record first: a command that cannot be recorded is not started. */
  #whyNot(order: ExecOrder): { readonly errno: string; readonly reason: string } | undefined {
    const { judge, audit, number } = this.#options
    try {
      judge?.(order)
      audit.record({
        kind: 'exec-start',
        execution: number,
        command: shortCommand(order.argv),
        cwd: order.cwd,
        terminal: order.terminal !== undefined,
      })
      return undefined
    } catch (error) {
      if (error instanceof PenError && error.code === 'SECRET')
        return { errno: 'EACCES', reason: `${error.message}; fix: ${error.hint}` }
      const why = error instanceof Error ? error.message : 'it cannot be written'
      return { errno: 'EIO', reason: `nothing runs without an audit: ${why}` }
    }
  }

  /** Writes input in order. The client gets credit for a piece when it was written. */
  #write(execution: Execution, bytes: Uint8Array): void {
    this.#input.receive(bytes.length)
    this.#writing = this.#writing
      .then(() => execution.write(bytes))
      .then(() => {
        const granted = this.#input.use(bytes.length)
        if (granted > 0) this.#report({ kind: 'window', channel: CHANNEL, bytes: granted })
      })
      .catch(() => undefined)
  }

  #finish(why: 'timeout' | 'client' | 'stop', signal: NodeJS.Signals): void {
    if (this.#isOver || this.#execution === undefined) return
    this.#why ??= why
    const execution = this.#execution
    clearTimeout(this.#timer)
    execution.signal(signal)
    this.#timer = setTimeout(() => {
      this.#kill(execution)
      // The client does not read the last report in time: disconnect.
      for (const outlet of Object.values(this.#outputs)) outlet.drop()
    }, GRACE_MS)
  }

  #kill(execution: Execution): void {
    const { unheard, isCopied, unheardMs = UNHEARD_MS } = this.#options
    const wait = (): void => {
      this.#last = setTimeout(() => (isCopied() ? wait() : unheard()), unheardMs)
    }
    if (this.#last === undefined) wait()
    execution.kill()
  }

  #end(ending: ExecEnding): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    clearTimeout(this.#last)
    if (wasKilled(ending)) this.#options.killed()
    // The command may have ended while its children still run.
    if (this.#why === 'timeout' || this.#why === 'client') this.#execution?.kill()
    try {
      this.#options.audit.record({
        kind: 'exec-end',
        execution: this.#options.number,
        exitCode: ending.kind === 'exit' ? ending.code : null,
        reason: this.#why ?? (ending.kind === 'exit' ? undefined : describe(ending)),
        ms: Date.now() - this.#began,
      })
    } catch {
      // The command has ended anyway. The audit counts records that could not be written.
    }
    const report = lastReport(this.#why === 'timeout' ? TIMED_OUT : ending)
    if (report !== undefined) this.#report(report)
    this.#options.done(report !== undefined)
    this.#over.resolve()
  }

  /** `started` is reported with the first output or with the end: only then it is certain. */
  #report(report: Report): void {
    const { send } = this.#options
    if (!this.#isStarted && report.kind !== 'failed')
      send(encodeReport({ kind: 'started', channel: CHANNEL }))
    this.#isStarted = true
    send(encodeReport(report))
  }
}

/** Killed by SIGKILL, or 137, which a shell reports for a killed child. */
const wasKilled = (ending: ExecEnding): boolean =>
  (ending.kind === 'signal' && ending.signal === 9) || (ending.kind === 'exit' && ending.code === 137)

/** The exit code of a command that was asked to end. */
const TIMED_OUT: ExecEnding = { kind: 'exit', code: EXIT.timeout }

/** Undefined when the sandbox ended first: the connection then closes without a report. */
function lastReport(ending: ExecEnding): Report | undefined {
  switch (ending.kind) {
    case 'exit':
      return { kind: 'exit', channel: CHANNEL, how: 'exit', value: ending.code }
    case 'signal':
      return { kind: 'exit', channel: CHANNEL, how: 'signal', value: ending.signal }
    case 'not-started':
      return { kind: 'failed', channel: CHANNEL, errno: ending.errno, reason: ending.reason ?? '' }
    case 'lost':
      return undefined
  }
}

const describe = (ending: Exclude<ExecEnding, { kind: 'exit' }>): string =>
  ending.kind === 'signal'
    ? (signalName(ending.signal) ?? `signal ${ending.signal}`)
    : ending.kind === 'lost'
      ? 'lost'
      : ending.errno

function wanted(number: number): NodeJS.Signals {
  const name = signalName(number)
  if (name === undefined) throw protocolError(`signal ${number}`)
  return name
}
