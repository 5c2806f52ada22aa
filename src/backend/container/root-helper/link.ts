/**
 * The supervisor's link to the root helper: pen as root, in another container (see root-helper/serve.ts). Both ends are
 * trusted.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { errnoOf, PenError } from '../../../base/error.ts'
import { O_PATH } from '../../../base/kernel/descriptor.ts'
import { listenForDescriptors, sendDescriptors } from '../../../base/kernel/pass-descriptors.ts'
import type { ProcessIdentity } from '../../../base/kernel/processes.ts'
import type { DescriptorRan } from '../../../base/kernel/run-with-descriptors.ts'
import { printable } from '../../../base/printable.ts'
import { Outbox } from '../../../protocol/outbox.ts'
import {
  encodeMessage,
  MessageReader,
  ROOT_HELPER_SOCKETS,
  type RootHelperAnswer,
  type RootHelperOrder,
} from '../../../protocol/root-helper-orders.ts'
import type { RootHelper } from '../../backend.ts'
import { type DaemonSocket, listenForDaemon } from '../../daemon-socket.ts'

/** Longer than any order takes. */
const TIMEOUT_MS = 30_000

export interface RootHelperListener {
  /** Resolves when the helper has connected and sees the supervisor's files. */
  readonly arrived: Promise<RootHelperLink>
  close(): void
}

/** `directory` belongs to the supervisor. Only the helper sees it. */
export function listenForRootHelper(directory: string): RootHelperListener {
  const descriptors = listenForDescriptors(`${directory}/${ROOT_HELPER_SOCKETS.descriptors}`)
  const orders = listenForDaemon(`${directory}/${ROOT_HELPER_SOCKETS.orders}`)
  const arrive = async (): Promise<RootHelperLink> => {
    const socket = await orders.connected
    // The helper connects to this socket first.
    const descriptorSocket = descriptors.accept()
    descriptors.close()
    if (descriptorSocket === undefined)
      throw new PenError('INTERNAL', { what: 'the root helper connected without descriptors' })
    const link = new RootHelperLink(socket, descriptorSocket)
    await link.enterHost()
    return link
  }
  const arrived = arrive()
  arrived.catch(() => undefined)
  return {
    arrived,
    close: () => {
      orders.close()
      descriptors.close()
    },
  }
}

export const lostRootHelper = (): PenError =>
  new PenError('BACKEND', {
    what: 'the root helper beside the container ended, so pen could protect no new places and ended the sandbox',
    hint: 'run it again',
  })

export class RootHelperLink implements RootHelper {
  readonly closed: Promise<void>
  readonly #socket: DaemonSocket
  readonly #descriptorSocket: number
  readonly #outbox: Outbox
  readonly #answers = new MessageReader<RootHelperAnswer>()
  readonly #awaited = new Map<number, (answer: RootHelperAnswer) => void>()
  readonly #closure = Promise.withResolvers<void>()
  #life: 'open' | 'closed' = 'open'
  #channels = 0

  constructor(socket: DaemonSocket, descriptorSocket: number) {
    this.#socket = socket
    this.#descriptorSocket = descriptorSocket
    this.#outbox = new Outbox(bytes => socket.write(bytes))
    this.closed = this.#closure.promise
    socket.listen({
      data: bytes => this.#receive(bytes),
      drain: () => this.#outbox.drain(),
      close: () => this.close(),
    })
  }

  async enterHost(): Promise<void> {
    const mounts = openSync('/proc/self/ns/mnt', 'r')
    const root = openSync('/', O_PATH | constants.O_DIRECTORY)
    try {
      await this.#request({ do: 'enter-host' }, [mounts, root])
    } finally {
      for (const fd of [mounts, root]) closeSync(fd)
    }
  }

  async run(
    argv: readonly string[],
    { descriptors, input = '', timeoutMs }: Parameters<RootHelper['run']>[1],
  ): Promise<DescriptorRan> {
    return (await this.#request({ do: 'run', argv, input, timeoutMs }, descriptors)) as DescriptorRan
  }

  async listRefused(socket: number): Promise<unknown> {
    return await this.#request({ do: 'list-refused' }, [socket])
  }

  async boundProcesses(pid: number, pids: number): Promise<void> {
    await this.#request({ do: 'bound-processes', pid, pids })
  }

  /** False when the helper is gone. */
  kill({ pid, startTime }: ProcessIdentity): boolean {
    if (this.#life === 'closed') return false
    this.#request({ do: 'kill', pid, startTime }).catch(() => undefined)
    return true
  }

  /** Waits for `awaited`, and rejects when the helper ends first. */
  async whileConnected<T>(awaited: Promise<T>): Promise<T> {
    return await Promise.race([this.closed.then(() => Promise.reject(lostRootHelper())), awaited])
  }

  /** Ends the root helper. */
  close(): void {
    if (this.#life === 'closed') return
    this.#life = 'closed'
    this.#socket.close()
    this.#outbox.close()
    closeSync(this.#descriptorSocket)
    for (const answer of this.#awaited.values()) answer({ failed: 'it ended' })
    this.#awaited.clear()
    this.#closure.resolve()
  }

  async #request(order: RootHelperOrder, descriptors: readonly number[] = []): Promise<unknown> {
    if (this.#life === 'closed') throw failure(order, 'it ended')
    const channel = ++this.#channels
    const { promise, resolve } = Promise.withResolvers<RootHelperAnswer>()
    this.#awaited.set(channel, resolve)
    if (!this.#hasSent(channel, descriptors)) throw failure(order, 'it ended')
    this.#outbox.send(encodeMessage(channel, { ...order, descriptors: descriptors.length }))
    // A helper that does not answer protects nothing. It counts as gone, and the sandbox ends.
    const timer = setTimeout(() => this.close(), TIMEOUT_MS)
    const answer = await promise
    clearTimeout(timer)
    if ('failed' in answer) throw failure(order, answer.failed)
    return answer.done
  }

  /** False when the helper does not accept them: it counts as gone. */
  #hasSent(channel: number, descriptors: readonly number[]): boolean {
    try {
      if (descriptors.length > 0)
        sendDescriptors(this.#descriptorSocket, { text: String(channel), descriptors })
      return true
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      this.close()
      return false
    }
  }

  #receive(bytes: Uint8Array): void {
    try {
      for (const { channel, message } of this.#answers.push(bytes)) {
        this.#awaited.get(channel)?.(message)
        this.#awaited.delete(channel)
      }
    } catch {
      this.close()
    }
  }
}

const failure = (order: RootHelperOrder, why: string): PenError =>
  new PenError('BACKEND', {
    what: `the root helper beside the container failed to ${order.do}: ${printable(why)}`,
    hint: 'run it again; `pen doctor` tests the engine',
  })
