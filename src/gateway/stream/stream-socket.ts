/** One end of a connection, as the gateway uses it. */

export interface SocketEvents {
  data(chunk: Buffer): void
  /** The peer has sent all it will send. */
  end(): void
  /** What could not be sent at once has been sent. */
  drain(): void
  /** The last event. Broken: by an error or a reset, not by two goodbyes. */
  close(isBroken: boolean): void
}

export interface StreamSocket {
  /** Who hears of it from now on. What came before waits, and is told first. */
  attach(events: SocketEvents): void
  /** Nobody hears of it until the next one attaches, to whom these bytes belong, and all that comes meanwhile. */
  detach(unread: Buffer): void
  /** Takes all of it, and tells whether more may follow now; else `drain` will. The bytes must not change afterwards. */
  write(bytes: Uint8Array): boolean
  /** A goodbye after what was written. The peer may go on. */
  end(): void
  /** What comes stays in the kernel. */
  pause(): void
  resume(): void
  destroy(): void
  reset(): void
  readonly isWritable: boolean
  /** In memory, because the peer does not take it, or because nobody here did. */
  readonly unsent: number
  readonly unread: number
  /** Of a plain connection that is open: another reader or writer finds the same bytes there. */
  readonly descriptor: number | undefined
}
