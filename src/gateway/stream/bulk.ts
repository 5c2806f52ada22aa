/**
 * Copies bytes that wait in the kernel from one socket to another, through one static buffer. Bun allocates an object for
 * every chunk, and for a download that costs more than the two copies of the kernel. Bun keeps ownership of both sockets:
 * between two of its reads, this takes the bytes that Bun would read next.
 */
import { ptr } from 'bun:ffi'
import { MSG } from '../../base/kernel/socket.ts'
import { tryCall } from '../../base/kernel/system-call.ts'
import type { StreamSocket } from './stream-socket.ts'
import { connectionState, TCP_STATE } from './tcp-socket.ts'

/** A chunk of this size suggests that more bytes wait. */
export const BULK = 16_384
const BUFFER_SIZE = 1_048_576
/** Rounds of one tunnel before other tunnels get a turn: about 2 ms. */
const MAX_ROUNDS = 4
/** Bytes of all tunnels in one turn of the event loop: about 10 ms. */
const MAX_PER_TURN = 33_554_432

export interface Moved {
  readonly bytes: number
  /** Read, but the other side cannot take it now. */
  readonly rest: Buffer | undefined
  /** The peer reset the connection. The kernel reports it once, so Bun does not see it. */
  readonly isReset: boolean
}

let shared: { readonly buffer: Buffer; readonly at: number } | undefined

/** Does nothing when Bun has queued bytes, which must go first, or when a side is TLS, which has no descriptor. */
export function moveBulk(from: StreamSocket, to: StreamSocket): Moved {
  const source = from.descriptor
  const target = to.descriptor
  if (source === undefined || target === undefined || process.platform !== 'linux') return NOTHING
  if (from.unread > 0 || to.unsent > 0) return NOTHING
  if (movedThisTurn >= MAX_PER_TURN) return NOTHING
  if (movedThisTurn === 0) setImmediate(newTurn)
  const moved = move(source, target)
  // Plus one, because 0 means that no turn has begun.
  movedThisTurn += moved.bytes + 1
  return moved
}

let movedThisTurn = 0
const newTurn = (): void => {
  movedThisTurn = 0
}

function move(source: number, target: number): Moved {
  shared ??= newBuffer()
  const { buffer, at } = shared
  let bytes = 0
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const taken = tryCall('recvfrom', source, at, BUFFER_SIZE, MSG.dontWait)
    // Bun sees the end of the stream too, and handles it.
    if (taken === 0) break
    if (taken < 0) return { bytes, rest: undefined, isReset: isClosed(source) }
    bytes += taken
    let given = 0
    while (given < taken) {
      const sent = tryCall('sendto', target, at + given, taken - given, MSG.dontWait | MSG.noSignal)
      // Full or broken. Bun finds out which when it writes the rest.
      if (sent <= 0) return { bytes, rest: Buffer.from(buffer.subarray(given, taken)), isReset: false }
      given += sent
    }
  }
  return { bytes, rest: undefined, isReset: false }
}

const NOTHING: Moved = { bytes: 0, rest: undefined, isReset: false }

function newBuffer() {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE)
  return { buffer, at: Number(ptr(buffer)) }
}

/** Asks for the TCP state, because errno may be overwritten before it is read. */
const isClosed = (fd: number): boolean => connectionState(fd) === TCP_STATE.closed
