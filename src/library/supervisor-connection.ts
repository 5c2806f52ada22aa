/** The library's client of a supervisor, on node:net, so that it runs on Node and on Bun. The supervisor is this user's own pen. */
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { ANSWER_TIMEOUT_MS, addressOf, connectError, controlPath } from '../control/address.ts'
import { type ControlEvents, type ControlStream, exchange } from '../control/execution.ts'
import { type JudgedAccess, type Request, type ShortRequest, takeValue } from '../control/messages.ts'
import type { Judged } from '../run/judge-refusal.ts'
import { asSandboxError, endedError, SandboxError } from './sandbox-error.ts'

export class SupervisorConnection implements ControlStream {
  readonly #socket: Socket
  #events: ControlEvents | undefined
  #isClosed: boolean = false

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => this.#events?.data(bytes))
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
        reject(connectError(stateDir, error) ?? endedError())
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
    if (this.#isClosed) events.closed()
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

  closed(): Promise<void> {
    return new Promise(resolve => this.attach({ data: () => undefined, closed: resolve }))
  }
}

interface Reply {
  readonly value: unknown
  readonly socket: SupervisorConnection
  /** Bytes that arrived after the answer. */
  readonly rest: Uint8Array
}

/** Throws the error that the supervisor answers with. `waitMs` extends the timeout for a request that waits for a person. */
export async function sendRequest(stateDir: string, request: Request, waitMs = 0): Promise<Reply> {
  let socket: SupervisorConnection | undefined
  try {
    socket = await SupervisorConnection.open(stateDir)
    const found = await exchange(stateDir, socket, request, ANSWER_TIMEOUT_MS + waitMs)
    if (found === undefined) throw endedError()
    return { value: takeValue(found.message), socket, rest: found.rest }
  } catch (error) {
    socket?.destroy()
    throw asSandboxError(error)
  }
}

/** The value of a short request. */
export async function requestValue(
  stateDir: string,
  request: ShortRequest,
  waitMs?: number,
): Promise<unknown> {
  const { socket, value } = await sendRequest(stateDir, request, waitMs)
  socket.end()
  return value
}

/** Asks whether the policy refuses an access that failed, and lets the supervisor record the denial. Null if it does not. */
export const judgeAccess = async (
  stateDir: string,
  access: JudgedAccess,
  path: string,
): Promise<Judged | null> => (await requestValue(stateDir, { want: 'judge', access, path })) as Judged | null

const STOP_TIMEOUT_MS = 15_000
const RECORD_TIMEOUT_MS = 2000
const POLL_MS = 5

/** Returns when the supervisor has ended. Removing its record is its last action. */
export async function stopSupervisor(stateDir: string): Promise<void> {
  const { socket } = await sendRequest(stateDir, { want: 'stop' })
  const late = new Promise<never>((_, reject) => {
    const error = new SandboxError('STATE', { what: 'the sandbox does not stop' })
    setTimeout(reject, STOP_TIMEOUT_MS, error).unref()
  })
  await Promise.race([socket.closed(), late])
  for (const deadline = performance.now() + RECORD_TIMEOUT_MS; performance.now() < deadline; ) {
    if (!existsSync(`${stateDir}/supervisor.json`)) return
    await new Promise(done => setTimeout(done, POLL_MS))
  }
}
