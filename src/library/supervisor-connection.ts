/** A connection to a supervisor, made of node:net: for programs on Node and on Bun alike. The supervisor is this user's own pen. */
import { connect, type Socket } from 'node:net'
import { errnoOf } from '../base/error.ts'
import { addressOf } from '../control/address.ts'
import {
  type Answer,
  AnswerReader,
  asPenError,
  encodeRequest,
  type Request,
  type ShortRequest,
} from '../control/messages.ts'
import type { ControlEvents, ControlStream } from '../control/stream.ts'
import { asSandboxError, endedError, SandboxError } from './sandbox-error.ts'

/** Longer than a supervisor that lives takes, on a machine that is busy. */
const PATIENCE_MS = 10_000

export class SupervisorConnection implements ControlStream {
  readonly #socket: Socket
  #events: ControlEvents | undefined
  #isClosed: boolean = false
  /** What came while nobody listened. */
  #held: Uint8Array[] = []

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      if (this.#events === undefined) this.#held.push(bytes)
      else this.#events.data(bytes)
    })
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#isClosed = true
      this.#events?.closed()
    })
  }

  static open(stateDir: string): Promise<SupervisorConnection> {
    return new Promise((resolve, reject) => {
      const address = addressOf(`${stateDir}/control`)
      const socket = connect({ path: address.path })
      socket.once('error', error => {
        address.close()
        reject(NOBODY.includes(errnoOf(error) ?? '') ? endedError() : unreachable(stateDir, error))
      })
      socket.once('connect', () => {
        address.close()
        socket.removeAllListeners('error')
        resolve(new SupervisorConnection(socket))
      })
    })
  }

  attach(events: ControlEvents): void {
    this.#events = events
    for (const bytes of this.#held.splice(0)) events.data(bytes)
    if (this.#isClosed) events.closed()
  }

  /** Between two who listen; `rest` is for the next one. */
  detach(rest: Uint8Array): void {
    this.#events = undefined
    if (rest.length > 0) this.#held.push(rest)
  }

  send(bytes: Uint8Array): void {
    if (!this.#socket.destroyed && this.#socket.writable) this.#socket.write(bytes)
  }

  room(): Promise<void> | undefined {
    if (!this.#socket.writableNeedDrain || this.#isClosed) return undefined
    return new Promise(resolve => {
      const done = (): void => {
        this.#socket.off('drain', done).off('close', done)
        resolve()
      }
      this.#socket.once('drain', done).once('close', done)
    })
  }

  end(): void {
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** The program may end while this is open; the supervisor sees it then. */
  unref(): void {
    this.#socket.unref()
  }
}

export interface Asked {
  readonly value: unknown
  readonly socket: SupervisorConnection
}

/** Throws what the supervisor says went wrong. */
export async function askSupervisor(
  stateDir: string,
  request: Request,
  patienceMs = PATIENCE_MS,
): Promise<Asked> {
  const socket = await SupervisorConnection.open(stateDir)
  const asked = new Promise<Answer>((resolve, reject) => {
    const reader = new AnswerReader()
    const late = setTimeout(() => reject(silent(stateDir)), patienceMs)
    socket.attach({
      data: bytes => {
        try {
          const found = reader.push(bytes)
          if (found === undefined) return
          clearTimeout(late)
          socket.detach(found.rest)
          resolve(found.answer)
        } catch (error) {
          clearTimeout(late)
          reject(asSandboxError(error))
        }
      },
      closed: () => {
        clearTimeout(late)
        reject(endedError())
      },
    })
  })
  socket.send(encodeRequest(request))
  try {
    const answer = await asked
    if (!answer.ok) throw asSandboxError(asPenError(answer.error))
    return { value: answer.value, socket }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** The value of a plain request, after `waitMs` at most beyond the supervisor's own time. */
export async function askFor(stateDir: string, request: ShortRequest, waitMs = 0): Promise<unknown> {
  const { socket, value } = await askSupervisor(stateDir, request, PATIENCE_MS + waitMs)
  socket.end()
  return value
}

/** A socket that nobody listens at is what a killed supervisor leaves; one that resets is just ending. */
const NOBODY = ['ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']

const unreachable = (stateDir: string, cause: Error): SandboxError =>
  new SandboxError('STATE', {
    what: `the supervisor of this sandbox cannot be reached (${errnoOf(cause) ?? 'unknown error'})`,
    at: `${stateDir}/control`,
    hint: errnoOf(cause) === 'EACCES' ? 'it is the sandbox of another user' : 'pen stop ends it',
    cause,
  })

const silent = (stateDir: string): SandboxError =>
  new SandboxError('STATE', {
    what: 'the supervisor of this sandbox does not answer',
    at: `${stateDir}/control`,
    hint: 'pen stop ends it',
  })
