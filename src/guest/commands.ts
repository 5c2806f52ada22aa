/** The commands of the exec daemon. The supervisor starts, feeds, signals and ends each by its channel. */
import { errnoOf } from '../base/error.ts'
import { reapOrphans } from '../base/kernel/reap-orphans.ts'
import { encodeReport, type Order, type Report } from '../protocol/exec-messages.ts'
import type { DaemonSetup, ExecOrder } from '../protocol/exec-order.ts'
import { protocolError } from '../protocol/frame.ts'
import type { Outbox } from '../protocol/outbox.ts'
import { isFull } from './bound-processes.ts'
import { Command } from './command.ts'
import { Connections } from './connections.ts'
import { killAll } from './kill.ts'
import { Spans } from './spans.ts'
import { NotStarted, start } from './start-command.ts'

/** Commands at the same time. More are refused, because the exec daemon would run out of descriptors. */
const MAX_COMMANDS = 256
const LOOK_MS = 50

export class Commands {
  readonly #outbox: Outbox
  readonly #setup: DaemonSetup
  readonly #init: number
  readonly #running = new Map<number, Command>()
  readonly #connections: Connections
  readonly #spans = new Spans()
  #lastChannel = 0
  #fullTimer: NodeJS.Timeout | undefined

  constructor(outbox: Outbox, setup: DaemonSetup, init: number) {
    this.#outbox = outbox
    this.#setup = setup
    this.#init = init
    this.#connections = new Connections(outbox)
    if (process.pid === init)
      reapOrphans(pid => [...this.#running.values()].some(command => command.pid === pid))
    if (setup.processes !== undefined)
      this.#fullTimer = setInterval(() => {
        if (this.#running.size === 0 || !isFull()) return
        clearInterval(this.#fullTimer)
        this.#say({ kind: 'full' })
      }, LOOK_MS)
  }

  obey(order: Exclude<Order, { kind: 'configure' }>): void {
    switch (order.kind) {
      case 'exec':
        this.#exec(order.channel, order.order)
        break
      case 'connect':
        this.#useChannel(order.channel)
        this.#connections.dial(order.channel, order.port)
        break
      case 'accept':
        this.#useChannel(order.channel)
        this.#connections.accept(order.channel)
        break
      case 'stdin':
        this.#channel(order.channel)?.write(order.bytes)
        break
      case 'stdin-end':
        this.#channel(order.channel)?.endInput()
        break
      case 'resize':
        this.#command(order.channel)?.resize(order.columns, order.rows)
        break
      case 'signal':
        this.#command(order.channel)?.signal(order.signal)
        break
      case 'window':
        this.#channel(order.channel)?.grant(order.stream, order.bytes)
        break
      case 'end':
        if (!this.#connections.end(order.channel)) this.#endAll(order.channel)
        break
      default:
        order satisfies never
    }
  }

  /** Also kills what an ended command left behind. */
  #endAll(channel: number): void {
    const isAlone = (start: number): boolean => this.#spans.isAlone(channel, start)
    const wanted = { leader: this.#command(channel)?.pid, mark: String(channel), init: this.#init, isAlone }
    killAll(wanted, this.#setup.user).catch(() => undefined)
  }

  /** Undefined when the command ended while the order was on its way. */
  #command(channel: number): Command | undefined {
    if (channel > this.#lastChannel) throw protocolError('an order for an unknown command')
    return this.#running.get(channel)
  }

  #channel(channel: number): Pick<Command, 'write' | 'endInput' | 'grant'> | undefined {
    return this.#connections.get(channel) ?? this.#command(channel)
  }

  #useChannel(channel: number): void {
    if (channel <= this.#lastChannel) throw protocolError('a channel that was already used')
    this.#lastChannel = channel
  }

  #exec(channel: number, order: ExecOrder): void {
    this.#useChannel(channel)
    try {
      if (this.#running.size >= MAX_COMMANDS)
        throw new NotStarted('EAGAIN', `${MAX_COMMANDS} commands are running in this sandbox already`)
      this.#spans.begin(channel)
      const command = new Command(channel, start(order, String(channel), this.#setup), this.#outbox)
      this.#running.set(channel, command)
      this.#say({ kind: 'started', channel })
      void command.run().finally(() => {
        this.#spans.end(channel)
        this.#running.delete(channel)
      })
    } catch (error) {
      this.#spans.end(channel)
      // An error of the kernel fails this order. Any other error is a bug of the exec daemon, and ends it.
      const errno = error instanceof NotStarted ? error.errno : errnoOf(error)
      if (errno === undefined || !(error instanceof Error)) throw error
      this.#say({ kind: 'failed', channel, errno, reason: error.message })
    }
  }

  #say(report: Report): void {
    this.#outbox.send(encodeReport(report))
  }
}
