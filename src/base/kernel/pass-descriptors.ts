/**
 * Passes open descriptors from one process to another over a Unix socket (SCM_RIGHTS). Both ends are pen processes: the
 * sandbox has neither.
 */
import { ptr } from 'bun:ffi'
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs'
import { basename, dirname } from '../posix-path.ts'
import { close } from './descriptor.ts'
import { AF, listenAtPath, MSG, SOCK, SOL, socketPair, unixName } from './socket.ts'
import { succeeded, systemCall, tryCall } from './system-call.ts'

/** The kernel allows 253. A door has seven, or two for each port where ports cannot be mapped. */
export const MOST_DESCRIPTORS = 240
const MOST_BYTES = 16_384

const SCM_RIGHTS = 1
const CONTROL_HEADER = 16
const MSG_CMSG_CLOEXEC = 0x40000000
const MSG_TRUNCATED = 0x20 | 0x8

export interface Delivery {
  readonly text: string
  readonly descriptors: readonly number[]
}

/** Two connected sockets that keep message boundaries. Both are close-on-exec. */
export const descriptorPair = (): readonly [number, number] => socketPair(SOCK.seqpacket)

interface DescriptorListener {
  /** A connection that has already arrived. The caller closes it. */
  accept(): number | undefined
  /** Stops listening and removes the path. */
  close(): void
}

export function listenForDescriptors(path: string): DescriptorListener {
  // A path through the open directory is short enough for sockaddr_un, however long the real path is.
  const directory = openSync(dirname(path), 'r')
  const fd = listenAtPath(`/proc/self/fd/${directory}/${basename(path)}`, 1, SOCK.seqpacket)
  // The other end may be another user. The modes of the directories above decide who can connect.
  chmodSync(path, 0o666)
  closeSync(directory)
  let open = true
  return {
    accept: () => {
      const accepted = tryCall('accept4', fd, null, null, SOCK.cloexec)
      return accepted < 0 ? undefined : accepted
    },
    close: () => {
      if (!open) return
      open = false
      close(fd)
      rmSync(path, { force: true })
    },
  }
}

export function connectForDescriptors(path: string): number {
  const fd = systemCall('socket', AF.unix, SOCK.seqpacket | SOCK.cloexec, 0)
  const name = unixName(path)
  succeeded(`connect to ${path}`, tryCall('connect', fd, name, name.length))
  return fd
}

export function sendDescriptors(over: number, { text, descriptors }: Delivery): void {
  const control = new Uint8Array(align(CONTROL_HEADER + 4 * descriptors.length))
  const view = new DataView(control.buffer)
  view.setBigUint64(0, BigInt(CONTROL_HEADER + 4 * descriptors.length), true)
  view.setInt32(8, SOL.socket, true)
  view.setInt32(12, SCM_RIGHTS, true)
  for (const [index, fd] of descriptors.entries()) view.setInt32(CONTROL_HEADER + 4 * index, fd, true)
  const message = header(new TextEncoder().encode(text), control)
  systemCall('sendmsg', over, message.head, MSG.noSignal)
}

/** The message that has already arrived. Undefined when there is none, or it is incomplete. */
export function receiveDescriptors(over: number): Delivery | undefined {
  const data = new Uint8Array(MOST_BYTES)
  const control = new Uint8Array(align(CONTROL_HEADER + 4 * MOST_DESCRIPTORS))
  const message = header(data, control)
  const size = tryCall('recvmsg', over, message.head, MSG.dontWait | MSG_CMSG_CLOEXEC)
  if (size <= 0) return undefined
  const descriptors = rights(control, Number(message.head[5] ?? 0n))
  if ((Number(message.head[6] ?? 0n) & MSG_TRUNCATED) !== 0) {
    for (const fd of descriptors) close(fd)
    return undefined
  }
  return { text: new TextDecoder().decode(data.subarray(0, size)), descriptors }
}

function rights(control: Uint8Array, used: number): number[] {
  const view = new DataView(control.buffer)
  if (
    used < CONTROL_HEADER ||
    view.getInt32(8, true) !== SOL.socket ||
    view.getInt32(12, true) !== SCM_RIGHTS
  )
    return []
  const count = (Math.min(Number(view.getBigUint64(0, true)), used) - CONTROL_HEADER) >> 2
  return Array.from({ length: count }, (_, index) => view.getInt32(CONTROL_HEADER + 4 * index, true))
}

/** `struct msghdr` of 64-bit Linux. The buffers that it points to are returned too, so that they stay alive. */
function header(data: Uint8Array, control: Uint8Array) {
  const vector = new BigUint64Array([BigInt(ptr(data)), BigInt(data.length)])
  const head = new BigUint64Array([
    0n,
    0n,
    BigInt(ptr(vector)),
    1n,
    BigInt(ptr(control)),
    BigInt(control.length),
    0n,
  ])
  return { head, vector, data, control }
}

const align = (size: number): number => (size + 7) & ~7
