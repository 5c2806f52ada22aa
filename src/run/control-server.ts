/**
 * The supervisor's control socket: for this user's own commands, and for nobody else. The directory is the user's alone, the socket has
 * mode 0600 from its first moment, and whoever connects is asked for by the kernel's word. No sandbox can see the path.
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
  RequestReader,
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
import { GRACE_MS } from './stopping.ts'
import type { Serving } from './supervisor.ts'

/** Commands, and questions for a person. */
const MOST_STAYING = 256
/** A model that fills these leaves its user a way to look, and to end it. */
const MOST_CLIENTS = MOST_STAYING + 64
const LAST_WORDS_MS = 1000
/** Whoever connects knows already what it wants. */
const REQUEST_MS = 5000

/** Their connection ends when the sandbox has. */
const STAYING_OPEN: readonly Request['want'][] = ['stop', 'pause', 'own']

export interface Served {
  readonly project: Project
  readonly serving: Serving
  readonly since: string
  /** By name; null where the host's own programs are used. */
  readonly image: string | null
  /** What it was started with. Kept in memory alone: there may be secrets in it. */
  readonly order: SupervisorOrder
}

interface Client {
  readonly socket: ControlSocket
  /** What comes is for whoever has it at the time. */
  take: (bytes: Uint8Array) => void
  relay: ExecRelay | undefined
  /** When it goes, they end. */
  forwards: OpenForwards | undefined
  /** When it goes, the sandbox ends. */
  isOwner: boolean
  /** Whether it is a command, or waits for a person. */
  stays: boolean
}

export class ControlServer {
  readonly #served: Served
  readonly #address: Address
  readonly #listener: { stop(closeAll?: boolean): void }
  readonly #clients = new Set<Client>()
  /** Until the sandbox is known to be wanted nobody is answered. */
  readonly #answering = Promise.withResolvers<void>()
  /** Which file the socket is. */
  readonly #ours: number | undefined
  #executions = 0
  #stopping: ReturnType<typeof setTimeout> | undefined
  #isStoppedForGood: boolean = false
  #isClosed: boolean = false

  constructor(served: Served) {
    this.#served = served
    this.#address = addressOf(statePaths(served.project.stateDir).control)
    const before = process.umask(0o177)
    try {
      this.#listener = Bun.listen<ControlSocket>({
        unix: this.#address.path,
        socket: {
          ...ControlSocket.handlers,
          open: native => {
            native.data = new ControlSocket()
            ControlSocket.handlers.open?.(native)
            this.#accept(native.data)
          },
        },
      })
    } finally {
      process.umask(before)
    }
    this.#ours = this.#inode()
    process.on('SIGTERM', this.#onSignal)
  }

  #inode(): number | undefined {
    return lstatSync(this.#address.path, { throwIfNoEntry: false })?.ino
  }

  answer(): void {
    this.#answering.resolve()
  }

  /** Whether its user, or the program whose sandbox it is, has ended it: then its flags hold no longer. */
  get isStoppedForGood(): boolean {
    return this.#isStoppedForGood
  }

  /** Commands are asked to end, then everything is ended. */
  stop(): void {
    if (this.#stopping !== undefined) return
    const end = (): void => this.#served.serving.running.kill()
    this.#stopping = setTimeout(end, GRACE_MS)
    const relays = [...this.#clients].flatMap(({ relay }) => relay ?? [])
    for (const relay of relays) relay.stop()
    void Promise.all(relays.map(relay => relay.over)).then(end)
  }

  /** The sandbox is gone: whoever still waits sees its connection end. Its end is a success if somebody asked for it. */
  close(): ExitCode | undefined {
    this.#isClosed = true
    process.off('SIGTERM', this.#onSignal)
    clearTimeout(this.#stopping)
    // It takes the name away, which is another supervisor's when somebody had removed ours.
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
    const requests = new RequestReader()
    client.take = bytes => {
      const found = requests.push(bytes)
      if (found === undefined) return
      clearTimeout(late)
      const early: Uint8Array[] = [found.rest]
      let held = found.rest.length
      client.take = more => {
        // Until the request has been answered, what follows waits here: an order for a command, and no more.
        held += more.length
        if (held > 4 * 2 ** 20) throw new PenError('WIRE', { what: 'too much before an answer' })
        early.push(more.slice())
      }
      void this.#answering.promise
        .then(() => this.#serve(found.request, client))
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
          // Not what was agreed: it is not answered, and costs nobody anything.
          socket.destroy()
        }
      },
      closed: () => {
        clearTimeout(late)
        this.#clients.delete(client)
        client.relay?.clientGone()
        client.forwards?.close()
        // Not where it is we who hang up: then the sandbox has ended, and nobody has stopped it.
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
    const hint = 'wait until some have ended, or end them'
    const error = new PenError('LIMIT', {
      what: `${MOST_STAYING} commands run in this sandbox already`,
      hint,
    })
    socket.send(encodeAnswer({ ok: false, error: serializeError(error) }))
    socket.end()
  }

  async #serve(request: Request, client: Client): Promise<void> {
    client.stays = request.want === 'exec' || request.want === 'ask' || request.want === 'forward'
    if (client.stays && [...this.#clients].filter(({ stays }) => stays).length > MOST_STAYING) {
      this.#turnAway(client)
      return
    }
    if (request.want === 'exec') {
      this.#serveExec(request.timeoutMs, client)
      return
    }
    // Nothing may follow.
    client.take = () => client.socket.destroy()
    if (request.want === 'forward') {
      const answer = await this.#forward(request, client)
      client.socket.send(encodeAnswer(answer))
      if (!answer.ok) client.socket.end()
      return
    }
    client.isOwner = request.want === 'own'
    client.socket.send(encodeAnswer(await this.#answerTo(request, client)))
    if (!STAYING_OPEN.includes(request.want)) client.socket.end()
  }

  async #answerTo(request: ShortRequest, client: Client): Promise<Answer> {
    try {
      switch (request.want) {
        case 'ping':
        case 'own':
          return { ok: true, value: null }
        case 'status':
          return {
            ok: true,
            value: statusOf(this.#served, this.#running()),
          }
        case 'stats':
          return { ok: true, value: await statsOf(this.#served.serving, this.#running()) }
        case 'order':
          return { ok: true, value: this.#served.order }
        case 'judge':
          return { ok: true, value: judgeRefusal(this.#served.serving, request) }
        case 'ask': {
          const isGone = (): boolean => !this.#clients.has(client)
          return { ok: true, value: await askForHost(this.#served.serving, request, isGone) }
        }
        case 'refused':
          this.#served.serving.limits.look()
          return { ok: true, value: this.#served.serving.refusals.since(request.since) }
        case 'stop':
        case 'pause':
          this.#isStoppedForGood ||= request.want === 'stop'
          // The connection ends when everything is gone: that is what the client waits for.
          this.stop()
          return { ok: true, value: this.#served.serving.refusals.lines() }
      }
    } catch (error) {
      return { ok: false, error: serializeError(error) }
    }
  }

  async #forward({ ports }: ForwardRequest, client: Client): Promise<Answer> {
    try {
      const opened = await this.#served.serving.forwarding.open(ports)
      // It may have gone meanwhile.
      if (this.#clients.has(client)) client.forwards = opened
      else opened.close()
      return { ok: true, value: { ports: opened.ports } }
    } catch (error) {
      return { ok: false, error: serializeError(error) }
    }
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
      audit: serving.audit,
      number: execution,
      killed: () => serving.limits.look(),
      unheard: () => serving.running.kill(),
      timeoutMs,
      send: bytes => socket.send(bytes),
      done: isTold => {
        client.relay = undefined
        // A client that has heard the end hangs up first: what it was still saying would else meet a closed socket, and some
        // runtimes then forget what they have not read yet.
        if (isTold) setTimeout(() => socket.end(), LAST_WORDS_MS)
        else socket.end()
      },
    })
    client.relay = relay
    client.take = bytes => relay.push(bytes)
    // Whoever runs a command that may have to wait for a person is told where to look for that.
    const { run } = serving.audit
    const asking = network.ask === 'hold' ? { asking: run } : {}
    const value = { timeoutMs, execution, run, refused: serving.refusals.all, ...asking }
    socket.send(encodeAnswer({ ok: true, value }))
  }
}
