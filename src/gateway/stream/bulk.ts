/**
 * Moves what has piled up in the kernel from one socket to another, through one buffer that is allocated once.
 * The runtime makes an object of every chunk; for a download that costs more than the kernel's two copies.
 * The runtime stays the owner of both sockets: between two of its reads, this takes what it would have read next.
 */
import { ptr } from 'bun:ffi'
import { MSG } from '../../base/kernel/socket.ts'
import { tryCall } from '../../base/kernel/system-call.ts'
import type { StreamSocket } from './stream-socket.ts'
import { connectionState, TCP_STATE } from './tcp-socket.ts'

/** A chunk this large says that more is waiting. */
export const BULK = 16_384
const ROOM = 1_048_576
/** What one tunnel may move before the others get their turn: some 2 ms. */
const MOST_ROUNDS = 4
/** What all tunnels together may move before the event loop gets to something else: some 10 ms. */
const MOST_AT_ONCE = 33_554_432

export interface Moved {
  readonly bytes: number
  /** Taken, but the other side has no room for it now. */
  readonly rest: Buffer | undefined
  /** Reset by its peer. The kernel tells that once, and it told us. */
  readonly isReset: boolean
}

let room: { readonly buffer: Buffer; readonly at: number } | undefined

/**
 * Only between sockets that hold nothing back: bytes in the runtime's own queues come first. And only between plain ones:
 * what the kernel holds of a TLS connection is not what its reader would read, so it shows no descriptor.
 */
export function moveBulk(from: StreamSocket, to: StreamSocket): Moved {
  const source = from.descriptor
  const target = to.descriptor
  if (source === undefined || target === undefined || process.platform !== 'linux') return NOTHING
  if (from.unread > 0 || to.unsent > 0) return NOTHING
  if (movedAtOnce >= MOST_AT_ONCE) return NOTHING
  if (movedAtOnce === 0) setImmediate(newTurn)
  const moved = move(source, target)
  // Never nothing: the turn has begun.
  movedAtOnce += moved.bytes + 1
  return moved
}

let movedAtOnce = 0
const newTurn = (): void => {
  movedAtOnce = 0
}

function move(source: number, target: number): Moved {
  room ??= newRoom()
  const { buffer, at } = room
  let bytes = 0
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const taken = tryCall('recvfrom', source, at, ROOM, MSG.dontWait)
    // Its end is seen by the runtime too, which then says goodbye.
    if (taken === 0) break
    if (taken < 0) return { bytes, rest: undefined, isReset: isClosed(source) }
    bytes += taken
    let given = 0
    while (given < taken) {
      const sent = tryCall('sendto', target, at + given, taken - given, MSG.dontWait | MSG.noSignal)
      // Full or broken: the runtime finds out which when it writes the rest.
      if (sent <= 0) return { bytes, rest: Buffer.from(buffer.subarray(given, taken)), isReset: false }
      given += sent
    }
  }
  return { bytes, rest: undefined, isReset: false }
}

const NOTHING: Moved = { bytes: 0, rest: undefined, isReset: false }

function newRoom() {
  const buffer = Buffer.allocUnsafeSlow(ROOM)
  return { buffer, at: Number(ptr(buffer)) }
}

/** Asked of the connection rather than of errno, which may have been overwritten by the time it is read. */
const isClosed = (fd: number): boolean => connectionState(fd) === TCP_STATE.closed
