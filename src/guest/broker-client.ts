/** The sandbox's side of the file broker: one request at a time, with streamed data. It has no rights of its own. */
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { errnoOf } from '../base/error.ts'
import {
  type DirectoryPage,
  encodeRequest,
  type FileFacts,
  type FileRefusal,
  type FileRequest,
  type GrantedPlace,
  type Reply,
  ReplyReader,
} from '../protocol/broker-messages.ts'
import { MAX_PAYLOAD, protocolError } from '../protocol/frame.ts'
import { INSIDE } from '../protocol/guest-paths.ts'
import { Allowance, Credit } from '../protocol/window.ts'

/** A refusal of the broker, with its message. */
export class FileRefused extends Error {
  readonly refusal: FileRefusal

  constructor(refusal: FileRefusal) {
    super(refusal.why)
    this.refusal = refusal
  }
}

/** The supervisor is busy in the first moments of a sandbox, which may be long on a busy machine. */
const TIMEOUT_MS = 15_000
const ASK_AGAIN_MS = 20

export class BrokerClient {
  readonly #socket: Socket
  readonly #replies: AsyncGenerator<Reply, void, void>
  #channel = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#replies = repliesOf(socket)
  }

  /** Undefined when the broker does not listen. */
  static async connect(path: string): Promise<BrokerClient | undefined> {
    for (const began = performance.now(); ; ) {
      const socket = await tryConnect(path)
      if (socket !== undefined) return new BrokerClient(socket)
      if (!existsSync(INSIDE) || performance.now() - began > TIMEOUT_MS) return undefined
      await new Promise(resolve => setTimeout(resolve, ASK_AGAIN_MS))
    }
  }

  close(): void {
    this.#socket.destroy()
  }

  async grants(): Promise<readonly GrantedPlace[]> {
    return (await this.#answer({ op: 'grants' }, 'granted')).places
  }

  async stat(path: string): Promise<FileFacts> {
    return (await this.#answer({ op: 'stat', path }, 'facts')).facts
  }

  async list(path: string, from: number): Promise<DirectoryPage> {
    return (await this.#answer({ op: 'list', path, from }, 'page')).page
  }

  /** Calls `begin` with the file's facts. The function that it returns receives the data, in order, and is awaited. */
  async read(
    path: string,
    begin: (facts: FileFacts) => (bytes: Uint8Array) => void | Promise<void>,
    { from = 0, length = null }: { readonly from?: number; readonly length?: number | null } = {},
  ): Promise<number> {
    const channel = this.#ask({ op: 'read', path, from, length })
    const sink = begin((await this.#expect('facts')).facts)
    const allowance = new Allowance()
    let bytes = 0
    for (;;) {
      const reply = await this.#next()
      if (reply.kind === 'done') {
        if (reply.bytes !== bytes) throw protocolError('the length differs from what was sent')
        return bytes
      }
      if (reply.kind !== 'data') throw protocolError('a reply to another request')
      allowance.receive(reply.bytes.length)
      bytes += reply.bytes.length
      const { length: used } = reply.bytes
      await sink(reply.bytes)
      const granted = allowance.use(used)
      if (granted > 0) this.#socket.write(encodeRequest({ kind: 'window', channel, bytes: granted }))
    }
  }

  /**
   * Writes all of `source` or nothing: the old content stays until the last byte has arrived. A refusal also ends a
   * write that waits.
   */
  async write(path: string, source: AsyncIterable<Uint8Array>, executable: boolean): Promise<number> {
    const channel = this.#ask({ op: 'write', path, executable })
    const pieces = source[Symbol.asyncIterator]()
    const credit = new Credit()
    let reply = markHandled(this.#next())
    let piece: Promise<IteratorResult<Uint8Array>> | undefined = markHandled(pieces.next())
    let left: Uint8Array = new Uint8Array()
    for (;;) {
      const waits = left.length === 0 ? piece : undefined
      const came = await Promise.race([reply, ...(waits === undefined ? [] : [waits])])
      if ('kind' in came) {
        if (came.kind === 'done' && piece === undefined) return came.bytes
        if (came.kind !== 'window') throw protocolError('a reply to another request')
        credit.grant(came.bytes)
        reply = markHandled(this.#next())
      } else if (came.done === true) {
        piece = undefined
        this.#socket.write(encodeRequest({ kind: 'complete', channel }))
      } else {
        left = came.value
        piece = markHandled(pieces.next())
      }
      left = this.#sendData(channel, left, credit)
    }
  }

  /** Sends as much as the window allows, and returns the rest. */
  #sendData(channel: number, bytes: Uint8Array, credit: Credit): Uint8Array {
    let left = bytes
    while (left.length > 0 && credit.left > 0) {
      const piece = left.subarray(0, Math.min(MAX_PAYLOAD, credit.left))
      credit.spend(piece.length)
      this.#socket.write(encodeRequest({ kind: 'data', channel, bytes: piece }))
      left = left.subarray(piece.length)
    }
    return left
  }

  #ask(request: FileRequest): number {
    const channel = ++this.#channel
    this.#socket.write(encodeRequest({ kind: 'request', channel, request }))
    return channel
  }

  async #answer<K extends Reply['kind']>(request: FileRequest, kind: K) {
    this.#ask(request)
    const reply = await this.#expect(kind)
    await this.#expect('done')
    return reply
  }

  async #next(): Promise<Reply> {
    const { value } = await this.#replies.next()
    if (value === undefined)
      throw new FileRefused({ reason: 'ended', why: 'the broker closed the connection', fix: null })
    if (value.channel !== this.#channel) throw protocolError('a reply to another request')
    if (value.kind === 'refused') throw new FileRefused(value.refusal)
    return value
  }

  async #expect<K extends Reply['kind']>(kind: K): Promise<Extract<Reply, { kind: K }>> {
    const reply = await this.#next()
    if (reply.kind !== kind) throw protocolError('a reply to another request')
    return reply as Extract<Reply, { kind: K }>
  }
}

/** Marks a promise as handled. One of two raced promises may reject after the race is over. */
function markHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

async function* repliesOf(socket: Socket): AsyncGenerator<Reply, void, void> {
  const reader = new ReplyReader()
  try {
    for await (const bytes of socket) yield* reader.push(bytes as Buffer)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
}

function tryConnect(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.once('connect', () => resolve(socket))
    socket.once('error', error => {
      const errno = errnoOf(error)
      if (errno === 'ENOENT' || errno === 'ECONNREFUSED' || errno === 'ENOTDIR' || errno === 'EAGAIN')
        resolve(undefined)
      else reject(error)
    })
  })
}
