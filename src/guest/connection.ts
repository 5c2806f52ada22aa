/** One connection of the exec daemon, with flow control in both directions. It is a channel, as a command is. */
import { encodeReport, type Report } from '../protocol/exec-messages.ts'
import { MAX_PAYLOAD } from '../protocol/frame.ts'
import type { Outbox } from '../protocol/outbox.ts'
import { Allowance, Credit } from '../protocol/window.ts'

type Native = Bun.Socket<Connection> & { close(): void }

export class Connection {
  readonly #credit = new Credit()
  readonly #allowance = new Allowance()
  /** Received from the peer, not yet reported. */
  #received: Uint8Array[] = []
  /** Ordered by the supervisor, not yet taken by the peer. */
  #toSend: Uint8Array[] = []
  #native: Native | undefined
  #channel: { readonly number: number; readonly outbox: Outbox; readonly done: () => void } | undefined
  #hasPeerEnded: boolean = false
  #isInputOver: boolean = false
  #isShutDown: boolean = false
  #isClosed: boolean = false
  #isBroken: boolean = false
  #isEndSaid: boolean = false
  #isOver: boolean = false

  static readonly handlers = {
    open(native: Bun.Socket<Connection>): void {
      native.data.#native = native as Native
    },
    data({ data: self }: Native, bytes: Uint8Array): void {
      self.#received.push(new Uint8Array(bytes))
      self.#report()
    },
    end({ data: self }: Native): void {
      self.#hasPeerEnded = true
      self.#report()
    },
    drain({ data: self }: Native): void {
      self.#send()
    },
    error(native: Native): void {
      native.data.#isBroken = true
      native.terminate()
    },
    close({ data: self }: Native, error?: unknown): void {
      // After a half close of this side, the runtime reports that of the peer only as a close.
      self.#isBroken ||= error !== undefined || !(self.#hasPeerEnded || self.#isShutDown)
      self.#hasPeerEnded = true
      self.#isClosed = true
      self.#report()
    },
  }

  /** `done` is called after the last report. */
  begin(number: number, outbox: Outbox, done: () => void): void {
    this.#channel = { number, outbox, done }
    this.#report()
  }

  write(bytes: Uint8Array): void {
    this.#allowance.receive(bytes.length)
    this.#toSend.push(new Uint8Array(bytes))
    this.#send()
  }

  endInput(): void {
    this.#isInputOver = true
    this.#send()
  }

  grant(_: 'stdout' | 'stderr', bytes: number): void {
    this.#credit.grant(bytes)
    this.#report()
  }

  /** Bytes that were all handed to the kernel still arrive. Otherwise the peer sees a reset. */
  end(): void {
    this.#isBroken = true
    this.#received = []
    if (this.#isClosed) this.#report()
    else if (this.#isShutDown) this.#native?.close()
    else this.#native?.terminate()
  }

  /** Bytes for a peer that is gone are accepted and dropped. */
  #send(): void {
    for (let first = this.#toSend[0]; first !== undefined; first = this.#toSend[0]) {
      const sent = this.#isClosed ? first.length : Math.max(0, this.#native?.write(first) ?? 0)
      this.#use(sent)
      if (sent < first.length) {
        this.#toSend[0] = first.subarray(sent)
        return
      }
      this.#toSend.shift()
    }
    if (!this.#isInputOver || this.#isShutDown) return
    this.#isShutDown = true
    this.#native?.shutdown()
  }

  #use(bytes: number): void {
    const granted = bytes === 0 ? 0 : this.#allowance.use(bytes)
    if (granted > 0) this.#say(channel => ({ kind: 'window', channel, bytes: granted }))
  }

  /** Reports what came, as far as the supervisor has room. The peer waits meanwhile. */
  #report(): void {
    const { outbox } = this.#channel ?? {}
    for (let first = this.#received[0]; first !== undefined; first = this.#received[0]) {
      const room = outbox?.room()
      const length = Math.min(MAX_PAYLOAD, this.#credit.left, first.length)
      if (outbox === undefined || room !== undefined || length === 0) {
        this.#native?.pause()
        void room?.then(() => this.#report())
        return
      }
      this.#credit.spend(length)
      const bytes = first.subarray(0, length)
      this.#say(channel => ({ kind: 'stdout', channel, bytes }))
      if (length === first.length) this.#received.shift()
      else this.#received[0] = first.subarray(length)
    }
    if (this.#channel === undefined || this.#isOver) return
    if (!this.#isClosed) this.#native?.resume()
    if (this.#hasPeerEnded && !this.#isBroken && !this.#isEndSaid) {
      this.#isEndSaid = true
      this.#say(channel => ({ kind: 'stdout-end', channel }))
    }
    if (!this.#isClosed) return
    this.#isOver = true
    this.#say(channel => ({ kind: 'exit', channel, how: 'exit', value: this.#isBroken ? 1 : 0 }))
    this.#channel.done()
  }

  #say(report: (channel: number) => Report): void {
    if (this.#channel !== undefined) this.#channel.outbox.send(encodeReport(report(this.#channel.number)))
  }
}
