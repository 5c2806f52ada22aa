/**
 * The exec daemon's end of a virtio-serial port. The port is a character device, which the runtime's sockets do not
 * accept. Reads and writes wait in a thread of the runtime, one of each at a time.
 */
import { openSync, read, write } from 'node:fs'

export interface PortEvents {
  data(bytes: Uint8Array): void
  /** The port takes bytes again. */
  drain(): void
  close(): void
}

const CHUNK = 65_536

export class SerialPort {
  readonly #fd: number
  readonly #events: PortEvents
  #isWriting: boolean = false

  constructor(path: string, events: PortEvents) {
    this.#fd = openSync(path, 'r+')
    this.#events = events
    this.#read(Buffer.alloc(CHUNK))
  }

  /** Returns how many bytes were taken. The caller keeps the rest until there is room. */
  write(bytes: Uint8Array): number {
    if (this.#isWriting) return 0
    this.#isWriting = true
    this.#write(bytes.slice())
    return bytes.length
  }

  #write(bytes: Uint8Array): void {
    write(this.#fd, bytes, (error, written) => {
      if (error !== null) return this.#events.close()
      if (written < bytes.length) return this.#write(bytes.subarray(written))
      this.#isWriting = false
      this.#events.drain()
    })
  }

  #read(buffer: Buffer): void {
    read(this.#fd, buffer, 0, buffer.length, null, (error, length) => {
      // Nothing to read: the supervisor has disconnected.
      if (error !== null || length === 0) return this.#events.close()
      this.#events.data(buffer.subarray(0, length))
      this.#read(buffer)
    })
  }
}
