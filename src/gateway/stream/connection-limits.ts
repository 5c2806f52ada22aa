/**
 * When descriptors run out (EMFILE), Bun does not pause a listener but retries in a busy loop. So pen limits its
 * connections: each may cost two descriptors, one for either side.
 */
import { readFileSync } from 'node:fs'
import type { TcpSocket } from './tcp-socket.ts'

/** Descriptors for the rest of a supervisor. */
const RESERVED = 256
const MAX_FORWARDED = 512

export function connectionLimits(): { readonly gateway: number; readonly forwards: number } {
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  const most = soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  const forwards = Math.min(MAX_FORWARDED, Math.floor(most / 16))
  return { gateway: Math.max(16, Math.floor((most - RESERVED) / 2) - forwards), forwards }
}

type Handle = (socket: TcpSocket) => void

/** Makes handlers that together have at most this many connections open. The others are reset. */
export function atMost(limit: number, rejected: () => void): (handle: Handle) => Handle {
  let open = 0
  return handle => socket => {
    if (open >= limit) {
      socket.reset()
      rejected()
      return
    }
    open += 1
    socket.onClosed = () => {
      open -= 1
    }
    handle(socket)
  }
}
