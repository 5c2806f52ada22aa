/**
 * One command in the sandbox, as the supervisor sees it. The exec daemon is hostile: a report that breaks the protocol
 * ends the link.
 */
import type { Order, Report, Stream } from '../protocol/exec-messages.ts'
import { MAX_PAYLOAD, protocolError } from '../protocol/frame.ts'
import { Allowance, Credit } from '../protocol/window.ts'
import type { ExecEnding, ExecOutput, Execution } from './backend.ts'

/** How an execution sends orders over the link. */
export interface OrderSender {
  order(order: Order): void
  /** Undefined when there is room now. */
  room(): Promise<void> | undefined
}

export type ReportOnOne = Exclude<Report, { kind: 'ready' | 'full' }>

/** Only for a connection, which is a channel without a command. */
export interface ConnectionEvents {
  started(): void
  /** After the last byte of output was delivered. */
  outputEnded(): void
}

export class DaemonExecution implements Execution {
  readonly ended: Promise<ExecEnding>
  readonly #channel: number
  readonly #sender: OrderSender
  readonly #output: ExecOutput
  readonly #connection: ConnectionEvents | undefined
  readonly #end: (ending: ExecEnding) => void
  readonly #credit = new Credit()
  readonly #allowances = { stdout: new Allowance(), stderr: new Allowance() }
  readonly #delivered: Record<Stream, Promise<void> | undefined> = { stdout: undefined, stderr: undefined }
  #isOutputOver: boolean = false
  #state: 'ordered' | 'started' | 'over' = 'ordered'
  #granted: () => void = () => undefined
  #written: Promise<void> = Promise.resolve()

  constructor(channel: number, output: ExecOutput, sender: OrderSender, connection?: ConnectionEvents) {
    this.#channel = channel
    this.#connection = connection
    this.#output = output
    this.#sender = sender
    let end: (ending: ExecEnding) => void = () => undefined
    // The library also runs this code on Node versions without Promise.withResolvers.
    this.ended = new Promise(resolve => {
      end = resolve
    })
    this.#end = ending => end(ending)
  }

  write(bytes: Uint8Array): Promise<void> {
    this.#written = this.#written.then(() => this.#send(bytes))
    return this.#written
  }

  endInput(): void {
    this.#written = this.#written.then(() => this.#order({ kind: 'stdin-end', channel: this.#channel }))
  }

  resize(columns: number, rows: number): void {
    const within = (size: number) => Math.min(0xffff, Math.max(0, Math.trunc(size)))
    this.#order({ kind: 'resize', channel: this.#channel, columns: within(columns), rows: within(rows) })
  }

  signal(signal: NodeJS.Signals): void {
    const { signals } = process.getBuiltinModule('node:os').constants
    this.#order({ kind: 'signal', channel: this.#channel, signal: signals[signal] })
  }

  kill(): void {
    // Also after the command has ended: this kills the processes that it left behind.
    this.#sender.order({ kind: 'end', channel: this.#channel })
  }

  /** Handles one report. Returns true when it is the last one. */
  receive(report: ReportOnOne): boolean {
    if ((this.#state === 'ordered') !== (report.kind === 'started' || report.kind === 'failed'))
      throw protocolError(`"${report.kind}" was not expected now`)
    switch (report.kind) {
      case 'started':
        this.#state = 'started'
        this.#connection?.started()
        return false
      case 'stdout-end':
        this.#endOutput()
        return false
      case 'stdout':
      case 'stderr':
        if (this.#isOutputOver) throw protocolError('output after its end')
        this.#allowances[report.kind].receive(report.bytes.length)
        this.#deliver(report.kind, report.bytes)
        return false
      case 'window':
        this.#credit.grant(report.bytes)
        this.#granted()
        return false
      case 'exit':
        this.#finish(
          report.how === 'exit'
            ? { kind: 'exit', code: report.value }
            : { kind: 'signal', signal: report.value },
        )
        return true
      default:
        this.#finish({ kind: 'not-started', errno: report.errno, reason: report.reason })
        return true
    }
  }

  /** The exec daemon ended, or broke the protocol. */
  lose(): void {
    this.#finish({ kind: 'lost' })
  }

  async #send(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length && this.#state !== 'over'; ) {
      if (this.#credit.left === 0) {
        await new Promise<void>(resolve => {
          this.#granted = resolve
        })
        continue
      }
      await this.#sender.room()
      const piece = bytes.subarray(at, at + Math.min(MAX_PAYLOAD, this.#credit.left))
      this.#credit.spend(piece.length)
      this.#order({ kind: 'stdin', channel: this.#channel, bytes: piece })
      at += piece.length
    }
  }

  #order(order: Order): void {
    if (this.#state !== 'over') this.#sender.order(order)
  }

  /** Delivers in order, one chunk at a time. The exec daemon's window bounds how much can wait. */
  #deliver(stream: Stream, bytes: Uint8Array): void {
    const before = this.#delivered[stream]
    // The socket reuses this buffer, so a chunk that waits is copied.
    const chunk = before === undefined ? bytes : bytes.slice()
    const done =
      before === undefined ? this.#pass(stream, chunk) : before.then(() => this.#pass(stream, chunk))
    const { length } = bytes
    if (done === undefined) {
      this.#used(stream, length)
      return
    }
    const settled = done.then(
      () => this.#used(stream, length),
      // The reader is gone. Grant the window anyway, so that the command does not hang.
      () => this.#used(stream, length),
    )
    this.#delivered[stream] = settled
    void settled.then(() => {
      if (this.#delivered[stream] === settled) this.#delivered[stream] = undefined
    })
  }

  #pass(stream: Stream, bytes: Uint8Array): Promise<void> | undefined {
    try {
      return this.#output(stream, bytes)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #used(stream: Stream, length: number): void {
    const bytes = this.#allowances[stream].use(length)
    if (bytes > 0) this.#order({ kind: 'window', channel: this.#channel, stream, bytes })
  }

  /** Once, and only of a connection. No output follows. */
  #endOutput(): void {
    const connection = this.#connection
    if (connection === undefined || this.#isOutputOver)
      throw protocolError('"stdout-end" was not expected now')
    this.#isOutputOver = true
    const before = this.#delivered.stdout
    if (before === undefined) connection.outputEnded()
    else void before.then(() => connection.outputEnded())
  }

  #finish(ending: ExecEnding): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#granted()
    void Promise.all([this.#delivered.stdout, this.#delivered.stderr]).then(() => this.#end(ending))
  }
}
