/**
 * The supervisor's link to the exec daemon in the sandbox. A command may have taken over the exec daemon, so its
 * reports are hostile: they are parsed strictly and bounded. The first report that breaks the protocol ends the link
 * and the sandbox.
 */
import { PenError } from '../base/error.ts'
import { pipe } from '../base/kernel/descriptor.ts'
import { socketPair } from '../base/kernel/socket.ts'
import { encodeOrder, type Order, type Report, ReportReader } from '../protocol/exec-messages.ts'
import { type DaemonSetup, readOrder, writeOrder } from '../protocol/exec-order.ts'
import { MAX_TEXT, protocolError } from '../protocol/frame.ts'
import { Outbox } from '../protocol/outbox.ts'
import type { ExecOrder, ExecOutput, Execution } from './backend.ts'
import { ChannelSocket } from './channel-socket.ts'
import { DaemonExecution, type OrderSender } from './daemon-execution.ts'
import { adoptDaemonSocket, type DaemonSocket } from './daemon-socket.ts'

/** Bytes that may wait for the exec daemon. When it does not read for so long, the link ends. */
const MAX_BACKLOG = 16 * 2 ** 20
const MAX_CONNECTIONS = 1024

export class DaemonLink {
  /** Resolves when the exec daemon is confined. Rejects when it ends before that. */
  readonly ready: Promise<void>
  readonly closed: Promise<void>
  /** Resolves when commands have reached the process limit, where the exec daemon enforces it. */
  readonly full: Promise<void>
  readonly #socket: DaemonSocket
  readonly #outbox: Outbox
  readonly #reports = new ReportReader()
  readonly #executions = new Map<number, DaemonExecution>()
  readonly #sender: OrderSender = { order: order => this.#order(order), room: () => this.#outbox.room() }
  readonly #readiness = Promise.withResolvers<void>()
  readonly #closure = Promise.withResolvers<void>()
  readonly #fullness = Promise.withResolvers<void>()
  #state: 'asked' | 'ready' | 'closed' = 'asked'
  #channels = 0
  #connections = 0

  constructor(socket: DaemonSocket, setup: DaemonSetup) {
    this.#socket = socket
    this.#outbox = new Outbox(bytes => socket.write(bytes))
    this.ready = this.#readiness.promise
    this.ready.catch(() => undefined)
    this.closed = this.#closure.promise
    this.full = this.#fullness.promise
    socket.listen({
      data: bytes => this.#receive(bytes),
      drain: () => this.#outbox.drain(),
      close: () => this.#end(undefined),
    })
    this.#order({ kind: 'configure', setup })
  }

  exec(order: ExecOrder, output: ExecOutput): Execution {
    const channel = ++this.#channels
    const execution = new DaemonExecution(channel, output, this.#sender)
    if (this.#state === 'closed') {
      execution.lose()
      return execution
    }
    const refusal = refuse(order)
    if (refusal === undefined) {
      this.#executions.set(channel, execution)
      this.#order({ kind: 'exec', channel, order })
    } else execution.receive({ kind: 'failed', channel, ...refusal })
    return execution
  }

  /**
   * A connection inside the sandbox: to a port of its loopback, or with the next client of the file broker. Those that
   * the exec daemon does not end are counted, so it cannot make the supervisor hold more and more.
   */
  connect(to: { readonly port: number } | 'broker-client'): ChannelSocket {
    const channel = ++this.#channels
    return new ChannelSocket((output, events) => {
      const execution = new DaemonExecution(channel, output, this.#sender, events)
      if (this.#state === 'closed' || this.#connections >= MAX_CONNECTIONS) execution.lose()
      else {
        this.#connections++
        void execution.ended.then(() => this.#connections--)
        this.#executions.set(channel, execution)
        this.#order(
          to === 'broker-client' ? { kind: 'accept', channel } : { kind: 'connect', channel, port: to.port },
        )
      }
      return execution
    })
  }

  /** Sends the signal to every running command. */
  signal(name: NodeJS.Signals): void {
    for (const execution of this.#executions.values()) execution.signal(name)
  }

  /** Ends the exec daemon, and so the sandbox. */
  close(): void {
    this.#end(undefined)
  }

  #receive(bytes: Uint8Array): void {
    try {
      for (const report of this.#reports.push(bytes)) this.#take(report)
    } catch (error) {
      this.#end(error)
    }
  }

  #take(report: Report): void {
    if (report.kind === 'ready') {
      if (this.#state !== 'asked') throw protocolError('"ready" was not expected now')
      this.#state = 'ready'
      this.#readiness.resolve()
      return
    }
    if (report.kind === 'full') {
      if (this.#state !== 'ready') throw protocolError('"full" was not expected now')
      this.#fullness.resolve()
      return
    }
    const execution = this.#executions.get(report.channel)
    if (this.#state !== 'ready' || execution === undefined)
      throw protocolError('a report on a command that was not ordered')
    if (execution.receive(report)) this.#executions.delete(report.channel)
  }

  #order(order: Order): void {
    if (this.#state === 'closed') return
    this.#outbox.send(encodeOrder(order))
    if (this.#outbox.backlog > MAX_BACKLOG)
      this.#end(protocolError('the exec daemon does not read its orders'))
  }

  #end(cause: unknown): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    const what = 'the exec daemon inside the sandbox ended before it was ready'
    this.#readiness.reject(new PenError('BACKEND', { what, ...(cause !== undefined && { cause }) }))
    this.#socket.close()
    this.#outbox.close()
    for (const execution of this.#executions.values()) execution.lose()
    this.#executions.clear()
    this.#closure.resolve()
  }
}

export interface LocalDaemon {
  readonly link: DaemonLink
  /** The exec daemon's end of the link, and its stderr. The caller closes both after the exec daemon has its copies. */
  readonly fds: { readonly socket: number; readonly errors: number }
}

/** For an exec daemon that pen starts itself, and that has the same user as its commands. */
export function linkToOwnDaemon(setup: Pick<DaemonSetup, 'env' | 'executable'>): LocalDaemon {
  const [ours, socket] = socketPair()
  const [output, errors] = pipe()
  void relayOutput(output)
  const link = new DaemonLink(adoptDaemonSocket(ours), {
    user: undefined,
    userDirectories: [],
    seccomp: undefined,
    emptyBounding: false,
    ...setup,
  })
  return { link, fds: { socket, errors } }
}

/** Enough for error messages of bubblewrap and the exec daemon. Any further output is dropped. */
const MAX_OUTPUT = 16 * 1024

/**
 * Copies output to the supervisor's log. It comes from inside, so it is hostile: it is bounded, and never printed as it
 * is.
 */
async function relayOutput(fd: number): Promise<void> {
  let left = MAX_OUTPUT
  try {
    for await (const bytes of Bun.file(fd).stream() as AsyncIterable<Uint8Array>) {
      if (left > 0) process.stderr.write(Buffer.from(bytes.subarray(0, left)))
      left -= bytes.length
    }
  } catch {
    // The sandbox has ended.
  }
}

/**
 * The exec daemon ends on an order that is malformed. So the supervisor checks the order first, and refuses only this
 * command.
 */
function refuse(order: ExecOrder): { errno: string; reason: string } | undefined {
  const bytes = writeOrder(order)
  if (bytes.length > MAX_TEXT) return { errno: 'E2BIG', reason: 'the command and its variables are too long' }
  try {
    readOrder(bytes)
    return undefined
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return {
      errno: 'EINVAL',
      reason: 'the command, its directory or its variables contain what the kernel does not accept',
    }
  }
}
