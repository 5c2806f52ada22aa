/**
 * The supervisor's control socket, for commands of the same user only. Only the user can enter its directory, the socket is created with
 * mode 0600, and the kernel names the user of each client. No sandbox can see the path.
 */
import { lstatSync } from 'node:fs'
import type { Running } from '../backend/backend.ts'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import type { Project } from '../config/project.ts'
import { type Address, addressOf } from '../control/address.ts'
import {
  type Answer,
  encodeAnswer,
  type ForwardRequest,
  type Request,
  requestReader,
  type ShortRequest,
  serializeError,
} from '../control/messages.ts'
import { ControlSocket } from '../control/socket.ts'
import { statePaths } from '../control/state.ts'
import type { SupervisorOrder } from '../control/supervisor-order.ts'
import { askForHost } from './ask-for-host.ts'
import { ExecRelay } from './exec-relay.ts'
import type { OpenForwards } from './forwards.ts'
import { judgeRefusal } from './judge-refusal.ts'
import { statsOf, statusOf } from './status.ts'
import { GRACE_MS } from './supervision/stopping.ts'
import type { Serving } from './supervision/supervisor.ts'

/** Commands, forwards, questions that wait for a person, and SSH clients. */
const MOST_STAYING = 256
/** A model that uses up all of the above still leaves room for `pen status` and `pen stop`. */
const MOST_CLIENTS = MOST_STAYING + 64
const LAST_WORDS_MS = 1000
/** A client sends its request at once, or is disconnected. */
const REQUEST_MS = 5000

/** Counted against the limit. */
const STAYING: readonly Request['want'][] = ['exec', 'ask', 'forward', 'attend']
/** After a success, these connections stay open until the client disconnects or the sandbox has ended. */
const STAYING_OPEN: readonly Request['want'][] = ['stop', 'pause', 'attend', 'own', 'forward']

export interface Served {
  readonly project: Project
  readonly serving: Serving
  readonly since: string
  /** The name of the image; null where the host's own programs are used. */
  readonly image: string | null
  /** The order of the start. It may hold secrets, so it stays in memory. */
  readonly order: SupervisorOrder
}

interface Client {
  readonly socket: ControlSocket
  /** The current reader of this client's bytes. */
  take: (bytes: Uint8Array) => void
  relay: ExecRelay | undefined
  /** Closed when the client disconnects. */
  forwards: OpenForwards | undefined
  /** The sandbox ends when this client disconnects. */
  isOwner: boolean
  /** Runs a command, or waits for a person. */
  stays: boolean
}

export class ControlServer {
  readonly #served: Served
  readonly #address: Address
  readonly #listener: { stop(closeAll?: boolean): void }
  readonly #clients = new Set<Client>()
  /** Resolved when the starter has confirmed the start. Requests wait until then. */
  readonly #answering = Promise.withResolvers<void>()
  /** The inode of our socket. */
  readonly #ours: number | undefined
  #executions = 0
  #stopping: ReturnType<typeof setTimeout> | undefined
  #isStoppedForGood: boolean = false
  #isClosed: boolean = false

  constructor(served: Served) {
    this.#served = served
    this.#address = addressOf(statePaths(served.project.stateDir).control)
    this.#listener = ControlSocket.listen(this.#address.path, socket => this.#accept(socket))
    this.#ours = this.#inode()
    process.on('SIGTERM', this.#onSignal)
  }

  #inode(): number | undefined {
    return lstatSync(this.#address.path, { throwIfNoEntry: false })?.ino
  }

  answer(): void {
    this.#answering.resolve()
  }

  /** The user, or the program that owns the sandbox, stopped it. Its flags are forgotten then. */
  get isStoppedForGood(): boolean {
    return this.#isStoppedForGood
  }

  /** Sends SIGTERM to every command, then kills the sandbox. */
  stop(): void {
    if (this.#stopping !== undefined) return
    const end = (): void => this.#served.serving.running.kill()
    this.#stopping = setTimeout(end, GRACE_MS)
    const relays = [...this.#clients].flatMap(({ relay }) => relay ?? [])
    for (const relay of relays) relay.stop()
    void Promise.all(relays.map(relay => relay.over)).then(end)
  }

  /** Call it after the sandbox's end. Clients that still wait are disconnected. An end that a client asked for is a success. */
  close(): ExitCode | undefined {
    this.#isClosed = true
    process.off('SIGTERM', this.#onSignal)
    clearTimeout(this.#stopping)
    // Closing the listener removes the socket's path. If the path was replaced, it belongs to another supervisor.
    if (this.#inode() === this.#ours) this.#listener.stop(false)
    for (const { socket } of this.#clients) socket.end()
    this.#address.close()
    return this.#stopping === undefined ? undefined : EXIT.ok
  }

  readonly #onSignal = (): void => this.stop()

  #accept(socket: ControlSocket): void {
    if (!socket.isOurUser) {
      socket.destroy()
      return
    }
    const client: Client = {
      socket,
      take: () => undefined,
      relay: undefined,
      forwards: undefined,
      isOwner: false,
      stays: false,
    }
    this.#clients.add(client)
    const late = setTimeout(() => socket.destroy(), REQUEST_MS)
    const requests = requestReader()
    client.take = bytes => {
      const found = requests.push(bytes)
      if (found === undefined) return
      clearTimeout(late)
      const early: Uint8Array[] = [found.rest]
      let held = found.rest.length
      client.take = more => {
        // Bytes that arrive before the answer wait here: at most the order for one command.
        held += more.length
        if (held > 4 * 2 ** 20) throw new PenError('WIRE', { what: 'too many bytes before the answer' })
        early.push(more.slice())
      }
      void this.#answering.promise
        .then(() => this.#serve(found.message, client))
        .then(() => {
          for (const piece of early) if (piece.length > 0) client.take(piece)
        })
        .catch(() => socket.destroy())
    }
    socket.attach({
      data: bytes => {
        try {
          client.take(bytes)
        } catch {
          // A protocol error: disconnect.
          socket.destroy()
        }
      },
      closed: () => {
        clearTimeout(late)
        this.#clients.delete(client)
        client.relay?.clientGone()
        client.forwards?.close()
        // When we disconnect first, the sandbox has ended by itself: it was not stopped.
        if (client.isOwner && !this.#isClosed) {
          this.#isStoppedForGood = true
          this.stop()
        }
      },
    })
    if (this.#clients.size > MOST_CLIENTS) this.#turnAway(client)
  }

  #turnAway(client: Client): void {
    const { socket } = client
    client.take = () => undefined
    const error = new PenError('LIMIT', {
      what: `${MOST_STAYING} commands run in this sandbox already`,
      hint: 'wait until some have ended, or end them',
    })
    socket.send(encodeAnswer({ ok: false, error: serializeError(error) }))
    socket.end()
  }

  async #serve(request: Request, client: Client): Promise<void> {
    client.stays = STAYING.includes(request.want)
    if (client.stays && [...this.#clients].filter(({ stays }) => stays).length > MOST_STAYING) {
      this.#turnAway(client)
      return
    }
    if (request.want === 'exec') {
      this.#serveExec(request.timeoutMs, client)
      return
    }
    // The client may send nothing more.
    client.take = () => client.socket.destroy()
    client.isOwner = request.want === 'own'
    const answer = await this.#valueFor(request, client).then(
      (value): Answer => ({ ok: true, value }),
      (error): Answer => ({ ok: false, error: serializeError(error) }),
    )
    client.socket.send(encodeAnswer(answer))
    if (!answer.ok || !STAYING_OPEN.includes(request.want)) client.socket.end()
  }

  async #valueFor(request: ShortRequest | ForwardRequest, client: Client): Promise<unknown> {
    const { serving, order } = this.#served
    switch (request.want) {
      case 'ping':
      case 'attend':
      case 'own':
        return null
      case 'status':
        return statusOf(this.#served, this.#running())
      case 'stats':
        return await statsOf(serving, this.#running())
      case 'order':
        return order
      case 'judge':
        return judgeRefusal(serving, request)
      case 'ask':
        return await askForHost(serving, request, () => !this.#clients.has(client))
      case 'refused':
        serving.limits.look()
        return serving.refusals.since(request.since)
      case 'forward':
        return await this.#forward(request, client)
      case 'stop':
      case 'pause':
        this.#isStoppedForGood ||= request.want === 'stop'
        // The client waits for the connection to close, which happens when everything is gone.
        this.stop()
        return serving.refusals.lines()
    }
  }

  async #forward({ ports }: ForwardRequest, client: Client): Promise<Pick<OpenForwards, 'ports'>> {
    const opened = await this.#served.serving.forwarding.open(ports)
    // The client may have disconnected.
    if (this.#clients.has(client)) client.forwards = opened
    else opened.close()
    return { ports: opened.ports }
  }

  #running(): number {
    return [...this.#clients].filter(({ relay }) => relay !== undefined).length
  }

  #serveExec(asked: number | null, client: Client): void {
    const { socket } = client
    const { serving } = this.#served
    const exec: Running['exec'] = serving.running.exec
    const { network, exec: bounds } = serving.prepared.loaded.policy
    const timeoutMs = asked === null ? null : Math.min(asked, bounds.ceiling)
    if (exec === undefined || this.#stopping !== undefined) {
      socket.end()
      return
    }
    const execution = ++this.#executions
    const relay = new ExecRelay({
      exec,
      judge: order => serving.vault?.refuseCopies(order),
      audit: serving.audit,
      number: execution,
      killed: () => serving.limits.look(),
      unheard: () => serving.running.kill(),
      isCopied: () => serving.limits.isCopied,
      timeoutMs,
      send: bytes => socket.send(bytes),
      done: isTold => {
        client.relay = undefined
        // The client disconnects first, after the last report. If we closed first while it still writes, some runtimes would
        // discard what they have not read.
        if (isTold) setTimeout(() => socket.end(), LAST_WORDS_MS)
        else socket.end()
      },
    })
    client.relay = relay
    client.take = bytes => relay.push(bytes)
    // A command may have to wait for a person: say where to answer.
    const { run } = serving.audit
    const asking = network.ask === 'hold' ? { asking: run } : {}
    const value = { timeoutMs, execution, run, refused: serving.refusals.all, ...asking }
    socket.send(encodeAnswer({ ok: true, value }))
  }
}
