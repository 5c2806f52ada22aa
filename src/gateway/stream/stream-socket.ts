/** The socket interface of the gateway. */

export interface SocketEvents {
  data(chunk: Buffer): void
  /** The peer has half-closed: no more bytes come. */
  end(): void
  /** The queued bytes are sent. */
  drain(): void
  /** The last event. `isBroken`: closed by an error or a reset, not by both sides. */
  close(isBroken: boolean): void
}

/** What is spoken inside TLS. */
export type TlsProtocol = 'http/1.1' | 'h2'

/** One end of a TLS connection. As a server: what the client has sent, and the certificate. As a client: whom to trust. */
export type TlsSide = { readonly protocol?: TlsProtocol } & (
  | { readonly isServer: true; readonly read: Uint8Array; readonly key: string; readonly cert: string }
  | { readonly isServer: false; readonly serverName: string; readonly ca?: string | undefined }
)

export interface StreamSocket {
  /** Sets the listener. It first gets the bytes that arrived before. */
  attach(events: SocketEvents): void
  /** Queues all bytes. False when the caller must wait for `drain`. The caller must not change the bytes later. */
  write(bytes: Uint8Array): boolean
  /** Goes on as TLS, once. Resolves when the handshake is over: undefined, or the error. A client has then checked the server. */
  startTls(side: TlsSide): Promise<unknown>
  readonly isSecure: boolean
  /** Half-closes after the queued bytes. The peer may keep sending. */
  end(): void
  /** Leaves incoming bytes in the kernel. */
  pause(): void
  resume(): void
  destroy(): void
  reset(): void
  readonly isWritable: boolean
  /** Bytes in memory: queued for the peer, and received without a listener. */
  readonly unsent: number
  readonly unread: number
  /** The descriptor of an open plain connection. Undefined for TLS. */
  readonly descriptor: number | undefined
}
