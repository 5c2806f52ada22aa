/** A Unix stream of the runtime's own, for both ends of the control socket: node:net costs a command more than all the rest. */
import { closeSync, constants, openSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { Outbox } from '../wire/outbox.ts'

export interface ControlEvents {
  /** The bytes may be reused afterwards. */
  data(bytes: Uint8Array): void
  /** The last event. */
  closed(): void
}

/** As the kernel has it, with the closing NUL. */
const LONGEST_ADDRESS = 108

type Native = Bun.Socket<ControlSocket> & { readonly fd: number }

export class ControlSocket {
  #native: Native | undefined
  #events: ControlEvents | undefined
  readonly #outbox = new Outbox(bytes => this.#native?.write(bytes) ?? 0)
  #isEnding: boolean = false
  #isClosed: boolean = false

  attach(events: ControlEvents): void {
    this.#events = events
  }

  /** In order. What the other end does not take stays in memory: whoever sends keeps it within bounds. */
  send(bytes: Uint8Array): void {
    if (!this.#isEnding) this.#outbox.send(bytes)
  }

  /** Undefined when everything has been taken. */
  room(): Promise<void> | undefined {
    return this.#outbox.room()
  }

  /** After what was sent. */
  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    const sent = this.#outbox.room()
    if (sent === undefined) this.#native?.end()
    else void sent.then(() => this.#native?.end())
  }

  destroy(): void {
    this.#native?.terminate()
  }

  get descriptor(): number | undefined {
    return this.#native?.fd
  }

  static readonly handlers: Bun.SocketHandler<ControlSocket> = {
    open: native => {
      native.data.#native = native as Native
    },
    data: (native, bytes) => native.data.#events?.data(bytes),
    drain: native => native.data.#outbox.drain(),
    close: native => native.data.#close(),
    end: native => native.data.#close(),
    error: native => native.data.#close(),
    connectError: () => undefined,
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#outbox.close()
    this.#events?.closed()
  }
}

export interface Address {
  readonly path: string
  close(): void
}

/** A path is longer in some homes than an address may be: then the way is through the open directory. */
export function addressOf(socket: string): Address {
  if (Buffer.byteLength(socket) < LONGEST_ADDRESS || process.platform !== 'linux')
    return { path: socket, close: () => undefined }
  const directory = openSync(dirname(socket), constants.O_RDONLY | constants.O_DIRECTORY)
  return {
    path: `/proc/self/fd/${directory}/${basename(socket)}`,
    close: () => closeSync(directory),
  }
}
