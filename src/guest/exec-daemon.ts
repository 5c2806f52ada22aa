/**
 * The exec daemon: the first program of a container, and of a process sandbox that stays. It starts commands for the
 * supervisor, over one socket. It obeys only the supervisor: commands can neither signal nor trace it when it has its
 * own user. When the socket closes, the exec daemon exits, and the sandbox ends.
 *
 * A soft sandbox has no namespaces. There the exec daemon reaps the orphans of its commands, sees only its own
 * descendants, and kills them before it exits.
 */
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { adoptOrphans, endBelow } from '../base/kernel/end-processes.ts'
import { encodeReport, type Order, OrderReader } from '../protocol/exec-messages.ts'
import type { DaemonSetup } from '../protocol/exec-order.ts'
import { protocolError } from '../protocol/frame.ts'
import { DAEMON_MODE } from '../protocol/guest-paths.ts'
import { Outbox } from '../protocol/outbox.ts'
import type { Commands } from './commands.ts'
import { confine } from './confine.ts'

/**
 * `unix:PATH` or `fd:NUMBER`, `port:PATH` in a virtual machine, or `bare:NUMBER` without namespaces.
 * `show:PATH` before that is for a supervisor that may not inspect root's processes. Resolves when the supervisor has
 * disconnected.
 */
export async function runExecDaemon(words: readonly string[]): Promise<ExitCode> {
  const [, shown] = /^show:(.+)$/.exec(words[0] ?? '') ?? []
  const [target, ...more] = shown === undefined ? words : words.slice(1)
  const [, how, where] = /^(unix|fd|port|bare):(.+)$/.exec(target ?? '') ?? []
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || where === undefined || more.length > 0)
    throw new PenError('USAGE', { what: `${DAEMON_MODE} is not a verb: pen starts it by itself` })
  // Orphans become children of the namespace's first process, or else of this process.
  const isBare = how === 'bare'
  const init = isBare ? process.pid : 1
  if (isBare) adoptOrphans()
  if (shown !== undefined) (await import('./show-namespaces.ts')).showNamespaces(shown)
  return await new Promise((resolve, reject) => {
    const place = how === 'unix' ? { unix: where } : { fd: Number(where) }
    const disconnected = (): void => {
      if (isBare) void endBelow(process.pid).finally(() => resolve(EXIT.ok))
      else resolve(EXIT.ok)
    }
    let daemon: ExecDaemon | undefined
    const receive = (bytes: Uint8Array): void => {
      try {
        daemon?.receive(bytes)
      } catch (error) {
        reject(error)
      }
    }
    const drain = (): void => daemon?.drain()
    const options = {
      ...place,
      socket: {
        open: (socket: Bun.Socket) => {
          daemon = new ExecDaemon(bytes => socket.write(bytes), init, reject)
        },
        data: (_: Bun.Socket, bytes: Uint8Array) => receive(bytes),
        drain,
        close: disconnected,
        error: disconnected,
      },
    }
    // What a command needs is loaded here: a snapshot includes it.
    if (how === 'port')
      void Promise.all([import('./serial-port.ts'), import('./commands.ts')]).then(([{ SerialPort }]) => {
        const port = new SerialPort(where, { data: receive, drain, close: disconnected }, reject)
        daemon = new ExecDaemon(bytes => port.write(bytes), init, reject)
      }, reject)
    else Bun.connect(options as Bun.UnixSocketOptions<undefined>).catch(reject)
    // The first garbage collection starts the collector's threads. Later, when commands use all allowed processes, that
    // would crash the exec daemon.
    Bun.gc(true)
  })
}

/** A start waits until the exec daemon is set up. So the code for commands is loaded after it has reported `ready`. */
class ExecDaemon {
  readonly #orders = new OrderReader()
  readonly #outbox: Outbox
  readonly #init: number
  readonly #fail: (error: unknown) => void
  /** Undefined before the setup. */
  #commands: Promise<Commands> | undefined

  constructor(write: (bytes: Uint8Array) => number, init: number, fail: (error: unknown) => void) {
    this.#outbox = new Outbox(write)
    this.#init = init
    this.#fail = fail
  }

  receive(bytes: Uint8Array): void {
    for (const order of this.#orders.push(bytes)) this.#obey(order)
  }

  drain(): void {
    this.#outbox.drain()
  }

  #obey(order: Order): void {
    if (order.kind === 'configure') this.#configure(order.setup)
    else if (this.#commands === undefined) throw protocolError('an order before the setup')
    else this.#commands.then(commands => commands.obey(order)).catch(this.#fail)
  }

  #configure(setup: DaemonSetup): void {
    if (this.#commands !== undefined) throw protocolError('a second setup')
    confine(setup)
    this.#outbox.send(encodeReport({ kind: 'ready' }))
    this.#commands = import('./commands.ts').then(
      ({ Commands }) => new Commands(this.#outbox, setup, this.#init),
    )
    this.#commands.catch(this.#fail)
  }
}
