/** The library's client of a supervisor, on node:net, so that it runs on Node and on Bun. The supervisor is this user's own pen. */
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { ANSWER_TIMEOUT_MS, addressOf, connectError, controlPath, timeoutError } from '../control/address.ts'
import type { ControlEvents, ControlStream } from '../control/execution.ts'
import {
  type Answer,
  AnswerReader,
  asPenError,
  encodeRequest,
  type Request,
  type ShortRequest,
} from '../control/messages.ts'
import { asSandboxError, endedError, SandboxError } from './sandbox-error.ts'

export class SupervisorConnection implements ControlStream {
  readonly #socket: Socket
  #events: ControlEvents | undefined
  #isClosed: boolean = false
  /** Bytes that arrived while no listener was attached. */
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
      const address = addressOf(controlPath(stateDir))
      const socket = connect({ path: address.path })
      socket.once('error', error => {
        address.close()
        const failure = connectError(stateDir, error)
        reject(failure === undefined ? endedError() : asSandboxError(failure))
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

  /** Removes the listener. `rest` goes to the next one. */
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

  /** Lets the program end while the connection is open. The supervisor then sees it close. */
  unref(): void {
    this.#socket.unref()
  }
}

export interface Reply {
  readonly value: unknown
  readonly socket: SupervisorConnection
}

/** Throws the error that the supervisor answers with. */
export async function sendRequest(
  stateDir: string,
  request: Request,
  timeoutMs = ANSWER_TIMEOUT_MS,
): Promise<Reply> {
  const socket = await SupervisorConnection.open(stateDir)
  const asked = new Promise<Answer>((resolve, reject) => {
    const reader = new AnswerReader()
    const timer = setTimeout(() => reject(asSandboxError(timeoutError(stateDir))), timeoutMs)
    socket.attach({
      data: bytes => {
        try {
          const found = reader.push(bytes)
          if (found === undefined) return
          clearTimeout(timer)
          socket.detach(found.rest)
          resolve(found.answer)
        } catch (error) {
          clearTimeout(timer)
          reject(asSandboxError(error))
        }
      },
      closed: () => {
        clearTimeout(timer)
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

/** The value of a short request. `waitMs` extends the timeout for a request that waits for a person. */
export async function requestValue(stateDir: string, request: ShortRequest, waitMs = 0): Promise<unknown> {
  const { socket, value } = await sendRequest(stateDir, request, ANSWER_TIMEOUT_MS + waitMs)
  socket.end()
  return value
}

const STOP_TIMEOUT_MS = 15_000
const RECORD_TIMEOUT_MS = 2000
const POLL_MS = 5

/** Returns when the supervisor has ended. Removing its record is its last action. */
export async function stopSupervisor(stateDir: string): Promise<void> {
  const { socket } = await sendRequest(stateDir, { want: 'stop' })
  await closed(socket)
  for (const deadline = performance.now() + RECORD_TIMEOUT_MS; performance.now() < deadline; ) {
    if (!existsSync(`${stateDir}/supervisor.json`)) return
    await new Promise(done => setTimeout(done, POLL_MS))
  }
}

function closed(socket: SupervisorConnection): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new SandboxError('STATE', { what: 'the sandbox does not stop' })),
      STOP_TIMEOUT_MS,
    )
    const done = (): void => {
      clearTimeout(timer)
      resolve()
    }
    socket.attach({ data: () => undefined, closed: done })
  })
}
