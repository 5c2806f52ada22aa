/** A command in a kept sandbox, as the client has it: an execution like any other, over the control socket. */
import type { ExecEnding, ExecOrder, ExecOutput, Execution } from '../backend/backend.ts'
import { encodeOrder, type Order, type Report, ReportReader, type Stream } from '../wire/exec-messages.ts'
import { MAX_PAYLOAD, wireError } from '../wire/frame.ts'
import { Allowance, Credit } from '../wire/window.ts'
import type { Asked } from './control-client.ts'
import { CHANNEL } from './control-messages.ts'
import { signalNumber } from './signal-number.ts'

interface Inlet {
  readonly allowance: Allowance
  /** What came is used in order. Undefined while nothing waits. */
  using: Promise<void> | undefined
}

const inlet = (): Inlet => ({ allowance: new Allowance(), using: undefined })

export class ClientExecution implements Execution {
  readonly ended: Promise<ExecEnding>
  readonly #socket: Asked['socket']
  readonly #output: ExecOutput
  readonly #reports = new ReportReader()
  readonly #credit = new Credit()
  readonly #inlets: Record<Stream, Inlet> = { stdout: inlet(), stderr: inlet() }
  readonly #end: (ending: ExecEnding) => void
  readonly #unsent: { bytes: Uint8Array; readonly sent: () => void }[] = []
  #isOver: boolean = false
  #endsInput: boolean = false

  constructor({ socket, rest }: Asked, order: ExecOrder, output: ExecOutput) {
    const { promise, resolve } = Promise.withResolvers<ExecEnding>()
    this.ended = promise
    this.#end = resolve
    this.#socket = socket
    this.#output = output
    socket.attach({ data: bytes => this.#hear(bytes), closed: () => this.#over({ kind: 'lost' }) })
    this.#tell({ kind: 'exec', channel: CHANNEL, order })
    if (rest.length > 0) this.#hear(rest)
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#isOver || bytes.length === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#unsent.push({ bytes, sent: resolve })
    this.#flush()
    await promise
  }

  endInput(): void {
    this.#endsInput = true
    this.#flush()
  }

  resize(columns: number, rows: number): void {
    this.#tell({ kind: 'resize', channel: CHANNEL, columns, rows })
  }

  signal(name: NodeJS.Signals): void {
    this.#tell({ kind: 'signal', channel: CHANNEL, signal: signalNumber(name) })
  }

  kill(): void {
    this.#tell({ kind: 'end', channel: CHANNEL })
  }

  #tell(order: Order): void {
    if (!this.#isOver) this.#socket.send(encodeOrder(order))
  }

  #flush(): void {
    for (let first = this.#unsent[0]; first !== undefined; first = this.#unsent[0]) {
      const most = Math.min(MAX_PAYLOAD, this.#credit.left)
      if (most === 0) return
      const piece = first.bytes.subarray(0, most)
      this.#credit.spend(piece.length)
      this.#tell({ kind: 'stdin', channel: CHANNEL, bytes: piece })
      first.bytes = first.bytes.subarray(piece.length)
      if (first.bytes.length > 0) continue
      this.#unsent.shift()
      first.sent()
    }
    if (!this.#endsInput) return
    this.#endsInput = false
    this.#tell({ kind: 'stdin-end', channel: CHANNEL })
  }

  #hear(bytes: Uint8Array): void {
    try {
      for (const report of this.#reports.push(bytes)) this.#take(report)
    } catch {
      // Whatever it is, it is no keeper of this version's: the connection says nothing more that counts.
      this.#socket.destroy()
      this.#over({ kind: 'lost' })
    }
  }

  #take(report: Report): void {
    if ('channel' in report && report.channel !== CHANNEL) throw wireError('a report for another')
    switch (report.kind) {
      case 'ready':
        throw wireError('a report for another')
      case 'started':
        return
      case 'stdout':
      case 'stderr':
        this.#use(report.kind, report.bytes)
        return
      case 'window':
        this.#credit.grant(report.bytes)
        this.#flush()
        return
      case 'exit':
        this.#over(
          report.how === 'exit'
            ? { kind: 'exit', code: report.value }
            : { kind: 'signal', signal: report.value },
        )
        return
      case 'failed':
        this.#over({ kind: 'not-started', errno: report.errno })
    }
  }

  #use(stream: Stream, bytes: Uint8Array): void {
    const at = this.#inlets[stream]
    at.allowance.receive(bytes.length)
    const used = (): void => {
      const granted = at.allowance.use(bytes.length)
      if (granted > 0) this.#tell({ kind: 'window', channel: CHANNEL, stream, bytes: granted })
    }
    if (at.using === undefined) {
      const using = this.#output(stream, bytes)
      if (using === undefined) used()
      else at.using = this.#last(at, using.then(used))
      return
    }
    const copy = bytes.slice()
    at.using = this.#last(at, at.using.then(() => this.#output(stream, copy)).then(used))
  }

  #last(at: Inlet, work: Promise<void>): Promise<void> {
    const last: Promise<void> = work
      .catch(() => undefined)
      .then(() => {
        if (at.using === last) at.using = undefined
      })
    return last
  }

  /** When everything that came has been used. */
  #over(ending: ExecEnding): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const { sent } of this.#unsent.splice(0)) sent()
    this.#socket.end()
    const { stdout, stderr } = this.#inlets
    void Promise.all([stdout.using, stderr.using]).then(() => this.#end(ending))
  }
}
