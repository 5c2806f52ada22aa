/**
 * pen's exec agent: the first program of a container, and of a process sandbox that stays. It starts commands for the
 * keeper, over one socket, and does nothing else. It obeys the keeper alone: commands can neither signal nor trace it where
 * it has a user of its own. When the socket ends, so does the agent, and with it the sandbox.
 *
 * In a soft sandbox there is no namespace around it: then it keeps the orphans of its commands, knows no process but those below
 * itself, and ends these before it goes.
 */
import { EXIT, type ExitCode, errnoOf, PenError } from '../base/error.ts'
import { encodeReport, type Order, OrderReader, type Report } from '../wire/exec-messages.ts'
import type { AgentSetup, ExecOrder } from '../wire/exec-order.ts'
import { wireError } from '../wire/frame.ts'
import { Outbox } from '../wire/outbox.ts'
import { AGENT_MODE } from '../wire/places.ts'
import { Command, type Voice } from './agent-command.ts'
import { confine } from './agent-confine.ts'
import { endBelow, keepOrphans, killAll } from './agent-kill.ts'
import { NotStarted, start } from './agent-start.ts'
import { reapOrphans } from './reap.ts'
import { Spans } from './spans.ts'

/** At once. The next is refused: descriptors are the agent's to lose, and every later command's. */
const MAX_COMMANDS = 256

/**
 * `unix:PATH` or `fd:NUMBER`; `bare:NUMBER` where no namespace is around it. Before that `show:PATH`, for a keeper that may not look.
 * Resolves when the keeper is gone.
 */
export async function runAgent(words: readonly string[]): Promise<ExitCode> {
  const [, shown] = /^show:(.+)$/.exec(words[0] ?? '') ?? []
  const [target, ...more] = shown === undefined ? words : words.slice(1)
  const [, how, where] = /^(unix|fd|bare):(.+)$/.exec(target ?? '') ?? []
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || where === undefined || more.length > 0)
    throw new PenError('USAGE', { what: `${AGENT_MODE} is not a verb: pen starts it by itself` })
  // The first process of its namespace is the parent of orphans, or this one.
  const init = how === 'bare' ? process.pid : 1
  if (how === 'bare') keepOrphans()
  if (shown !== undefined) (await import('./show-namespaces.ts')).showNamespaces(shown)
  return await new Promise((resolve, reject) => {
    const place = how === 'unix' ? { unix: where } : { fd: Number(where) }
    const over = (): void => {
      if (how === 'bare') void endBelow().finally(() => resolve(EXIT.ok))
      else resolve(EXIT.ok)
    }
    const agents = new Map<object, Agent>()
    const options = {
      ...place,
      socket: {
        open: (socket: Bun.Socket) => void agents.set(socket, new Agent(bytes => socket.write(bytes), init)),
        data: (socket: Bun.Socket, bytes: Uint8Array) => {
          try {
            agents.get(socket)?.hear(bytes)
          } catch (error) {
            reject(error)
          }
        },
        drain: (socket: Bun.Socket) => agents.get(socket)?.drain(),
        close: over,
        error: over,
      },
    }
    Bun.connect(options as Bun.UnixSocketOptions<undefined>).catch(reject)
    // The collector's threads are started by its first round. Later, when commands have used up all processes, that would end us.
    Bun.gc(true)
  })
}

class Agent {
  readonly #orders = new OrderReader()
  readonly #outbox: Outbox
  readonly #commands = new Map<number, Command>()
  readonly #spans = new Spans()
  readonly #init: number
  readonly #voice: Voice = {
    say: report => this.#say(report),
    room: () => this.#outbox.room(),
  }
  #setup: AgentSetup | undefined
  #lastChannel = 0

  constructor(write: (bytes: Uint8Array) => number, init: number) {
    this.#outbox = new Outbox(write)
    this.#init = init
  }

  hear(bytes: Uint8Array): void {
    for (const order of this.#orders.push(bytes)) this.#obey(order)
  }

  drain(): void {
    this.#outbox.drain()
  }

  #obey(order: Order): void {
    switch (order.kind) {
      case 'configure':
        this.#configure(order.setup)
        break
      case 'exec':
        this.#exec(order.channel, order.order)
        break
      case 'stdin':
        this.#command(order.channel)?.write(order.bytes)
        break
      case 'stdin-end':
        this.#command(order.channel)?.endInput()
        break
      case 'resize':
        this.#command(order.channel)?.resize(order.columns, order.rows)
        break
      case 'signal':
        this.#command(order.channel)?.signal(order.signal)
        break
      case 'window':
        this.#command(order.channel)?.grant(order.stream, order.bytes)
        break
      case 'end':
        this.#endAll(order.channel)
        break
    }
  }

  /** Also what a command left behind that has ended itself: it was to be ended as a whole. */
  #endAll(channel: number): void {
    const isAlone = (start: number): boolean => this.#spans.isAlone(channel, start)
    const wanted = { leader: this.#command(channel)?.pid, mark: String(channel), init: this.#init, isAlone }
    killAll(wanted, this.#setup?.user).catch(() => undefined)
  }

  /** Undefined when it ended while the order was on its way. */
  #command(channel: number): Command | undefined {
    if (channel > this.#lastChannel) throw wireError('an order for a command that never was')
    return this.#commands.get(channel)
  }

  #configure(setup: AgentSetup): void {
    if (this.#setup !== undefined) throw wireError('a second setup')
    confine(setup)
    this.#setup = setup
    if (process.pid === this.#init)
      reapOrphans(pid => [...this.#commands.values()].some(command => command.pid === pid))
    this.#say({ kind: 'ready' })
  }

  #exec(channel: number, order: ExecOrder): void {
    const setup = this.#setup
    if (setup === undefined) throw wireError('an order before the setup')
    if (channel <= this.#lastChannel) throw wireError('a channel that was used before')
    this.#lastChannel = channel
    try {
      if (this.#commands.size >= MAX_COMMANDS)
        throw new NotStarted('EAGAIN', `${MAX_COMMANDS} commands are running in this sandbox already`)
      this.#spans.begin(channel)
      const command = new Command(channel, start(order, String(channel), setup), this.#voice)
      this.#commands.set(channel, command)
      this.#say({ kind: 'started', channel })
      void command.run().finally(() => this.#over(channel))
    } catch (error) {
      this.#spans.end(channel)
      // What the kernel refuses is the order's trouble; everything else is a mistake of the agent's, and ends it.
      const errno = error instanceof NotStarted ? error.errno : errnoOf(error)
      if (errno === undefined || !(error instanceof Error)) throw error
      this.#say({ kind: 'failed', channel, errno, reason: error.message })
    }
  }

  #over(channel: number): void {
    this.#spans.end(channel)
    this.#commands.delete(channel)
  }

  #say(report: Report): void {
    this.#outbox.send(encodeReport(report))
  }
}
