/**
 * The exec daemon's end of a virtio-serial port. The port is a character device, which the runtime's sockets do not
 * accept. Reads and writes wait in a thread of the runtime, one of each at a time.
 */
import { openSync, read, write, writeSync } from 'node:fs'
import { protocolError } from '../protocol/frame.ts'
import { MAX_GUEST_LINE, readGuestLine, WAITING } from '../protocol/guest-line.ts'
import { enterSandbox } from './enter-sandbox.ts'

export interface PortEvents {
  data(bytes: Uint8Array): void
  /** The port takes bytes again. */
  drain(): void
  close(): void
}

const CHUNK = 65_536
const NEWLINE = 10

export class SerialPort {
  readonly #fd: number
  readonly #events: PortEvents
  /** What has arrived of the first line. Undefined after it. */
  #line: Buffer | undefined = Buffer.alloc(0)
  #isWriting: boolean = false

  /** `fail` gets the reason why the guest did not enter its sandbox. */
  constructor(path: string, events: PortEvents, fail: (error: unknown) => void) {
    this.#fd = openSync(path, 'r+')
    this.#events = events
    this.#read(Buffer.alloc(CHUNK), fail)
    writeSync(1, `${WAITING}\n`)
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

  #read(buffer: Buffer, fail: (error: unknown) => void): void {
    read(this.#fd, buffer, 0, buffer.length, null, (error, length) => {
      // Nothing to read: the supervisor has disconnected.
      if (error !== null || length === 0) return this.#events.close()
      try {
        const bytes =
          this.#line === undefined ? buffer.subarray(0, length) : this.#enter(buffer.subarray(0, length))
        if (bytes.length > 0) this.#events.data(bytes)
        this.#read(buffer, fail)
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Returns what follows the first line. */
  #enter(bytes: Buffer): Uint8Array {
    const all = Buffer.concat([this.#line ?? bytes, bytes])
    const end = all.indexOf(NEWLINE)
    if (end < 0 && all.length > MAX_GUEST_LINE) throw protocolError('a first line that is too long')
    this.#line = end < 0 ? all : undefined
    if (end < 0) return all.subarray(0, 0)
    enterSandbox(readGuestLine(all.subarray(0, end).toString()))
    return all.subarray(end + 1)
  }
}
