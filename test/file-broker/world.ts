/** A broker on a real socket, with real files: granted ones, and others beside them. */
import { lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { AuditEventInput } from '../../src/audit/event.ts'
import { Broker } from '../../src/file-broker/broker.ts'
import type { BrokerLimits } from '../../src/file-broker/limits.ts'
import { type Listening, listen } from '../../src/file-broker/listen.ts'
import { BrokerClient, FileRefused } from '../../src/guest/broker-client.ts'
import type { FileGrant } from '../../src/policy/files/decide-grant.ts'
import type { HostPath } from '../../src/policy/files/path.ts'
import { denyAll } from '../../src/policy/policy.ts'
import {
  encodeRequest,
  type Reply,
  ReplyReader,
  type RequestMessage,
} from '../../src/protocol/broker-messages.ts'

export const SECRET = 'a secret of the host'

export class BrokerWorld {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-broker-')))
  /** Granted for reading, unless a test says otherwise. */
  readonly open = join(this.root, 'open')
  readonly closed = join(this.root, 'closed')
  readonly events: AuditEventInput[] = []
  readonly failures: unknown[] = []
  grants: readonly FileGrant[] = []
  /** Set to make the audit fail. */
  auditFails: boolean = false
  readonly #socket = join(this.root, 'socket')
  #listening: Listening | undefined

  static async start(
    options: { limits?: Partial<BrokerLimits>; deny?: string; maxWritten?: number } = {},
  ): Promise<BrokerWorld> {
    const world = new BrokerWorld()
    mkdirSync(world.open)
    mkdirSync(world.closed)
    writeFileSync(join(world.closed, 'secret'), SECRET)
    world.grants = [world.grant(world.open)]
    const workspace = join(world.root, 'project') as HostPath
    mkdirSync(workspace)
    const { files } = denyAll(workspace)
    const source = { layer: 'test', place: undefined }
    const deny = options.deny === undefined ? [] : [{ rule: pathRule(world.root, options.deny), source }]
    const broker = new Broker({
      policy: { workspace, files: { ...files, deny } },
      grants: () => world.grants,
      audit: {
        record: event => {
          if (world.auditFails) throw new Error('the disk is full')
          world.events.push(event)
        },
      },
      maxWritten: options.maxWritten ?? 1024 ** 3,
      fail: error => world.failures.push(error),
      ...(options.limits !== undefined && { limits: options.limits }),
    })
    world.#listening = listen(world.#socket, broker, error => world.failures.push(error))
    return world
  }

  grant(path: string, more: Partial<FileGrant> = {}): FileGrant {
    const kind = lstatSync(path).isDirectory() ? 'directory' : 'file'
    const { dev, ino } = lstatSync(kind === 'directory' ? path : dirname(path), { bigint: true })
    return {
      path: path as HostPath,
      kind,
      write: false,
      execute: false,
      until: undefined,
      root: { dev, ino },
      ...more,
    }
  }

  file(name: string, content: string | Uint8Array): string {
    const path = join(this.open, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    return path
  }

  async client(): Promise<BrokerClient> {
    const client = await BrokerClient.connect(this.#socket)
    if (client === undefined) throw new Error('no client is connected')
    return client
  }

  /** One request by a new client. */
  async ask<T>(work: (client: BrokerClient) => Promise<T>): Promise<T> {
    const client = await this.client()
    try {
      return await work(client)
    } finally {
      client.close()
    }
  }

  async read(path: string): Promise<string> {
    return await this.ask(async client => {
      const pieces: Buffer[] = []
      await client.read(path, () => bytes => void pieces.push(Buffer.from(bytes)))
      return Buffer.concat(pieces).toString()
    })
  }

  async write(path: string, content: string | Uint8Array, executable = false): Promise<number> {
    return await this.ask(client => client.write(path, chunks(content), executable))
  }

  /** The reason of a refusal, or `served`. */
  async reason(work: Promise<unknown>): Promise<string> {
    try {
      await work
      return 'served'
    } catch (error) {
      if (error instanceof FileRefused) return error.refusal.reason
      throw error
    }
  }

  raw(): RawClient {
    return new RawClient(this.#socket)
  }

  kinds(): string[] {
    return this.events.map(event => ('reason' in event ? `${event.kind} ${event.reason}` : event.kind))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening?.close()
    rmSync(this.root, { recursive: true, force: true })
    if (this.failures.length > 0) throw this.failures[0]
  }
}

const pathRule = (root: string, name: string) => ({
  kind: 'path' as const,
  path: join(root, name) as HostPath,
})

export async function* chunks(content: string | Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from(content)
}

/** Sends what it is given, and reads only when asked. */
export class RawClient {
  readonly socket: Socket
  readonly #reader = new ReplyReader()
  readonly #replies: Reply[] = []
  #isClosed: boolean = false

  constructor(path: string) {
    this.socket = connect(path)
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.#isClosed = true
    })
    this.socket.on('data', (bytes: Buffer) => {
      for (const reply of this.#reader.push(bytes))
        this.#replies.push(reply.kind === 'data' ? { ...reply, bytes: Buffer.from(reply.bytes) } : reply)
    })
  }

  send(...asks: readonly RequestMessage[]): void {
    this.socket.write(Buffer.concat(asks.map(encodeRequest)))
  }

  /** Waits for the first reply that matches and has not been taken. */
  async reply(isSo: (reply: Reply) => boolean): Promise<Reply> {
    for (const late = performance.now() + 10_000; performance.now() < late; await Bun.sleep(1)) {
      const at = this.#replies.findIndex(isSo)
      const [found] = at < 0 ? [] : this.#replies.splice(at, 1)
      if (found !== undefined) return found
      if (this.#isClosed) break
    }
    throw new Error(
      `no such reply; closed: ${this.#isClosed}; there are ${this.#replies.map(one => one.kind)}`,
    )
  }

  async closed(): Promise<void> {
    for (const late = performance.now() + 10_000; !this.#isClosed; await Bun.sleep(1))
      if (performance.now() > late) throw new Error('still open')
  }
}
