/**
 * Clients of the file broker in the guest. A Unix socket of the host cannot be dialled from another kernel, so the exec
 * daemon listens in its place, and each client travels on a channel. The broker serves it as it serves every other.
 */
import { mkdirSync, openSync, rmSync, symlinkSync } from 'node:fs'
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOCK, unixName } from '../../base/kernel/socket.ts'
import { systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import type { UndoStack } from '../../base/undo.ts'
import { ByteStream } from '../../gateway/stream/byte-stream.ts'
import { joinStreams } from '../../gateway/stream/join-streams.ts'
import { TcpSocket } from '../../gateway/stream/tcp-socket.ts'
import { cgroupName } from '../../limits/cgroup-name.ts'
import { BROKER_IN_GUEST, BROKER_SOCKET } from '../../protocol/guest-paths.ts'
import type { ChannelSocket } from '../channel-socket.ts'
import type { DaemonLink } from '../daemon-link.ts'

/** Fewer than the broker accepts. Further clients wait in the guest. */
const MAX_CLIENTS = 32
/** The broker opens soon after the start. */
const RETRY_MS = 50
const TIMEOUT_MS = 10_000

/**
 * Makes the broker's directory on the host, beside `shown`, which the guest sees at `/run/pen`. The next start removes
 * both when pen is killed.
 */
export function makeBrokerDir(shown: string, run: string, undo: UndoStack): string {
  const dir = `${dirname(shown)}/${cgroupName(`${run}-broker`)}`
  mkdirSync(dir, { mode: 0o700 })
  undo.push('the directory of the file broker', () => rmSync(dir, { recursive: true, force: true }))
  symlinkSync(BROKER_IN_GUEST, `${shown}/${basename(BROKER_SOCKET)}`)
  return dir
}

/** One channel waits for the next client. It is ordered when a client has come and another has its turn. */
export function passBrokerClients(link: DaemonLink, brokerDir: string): void {
  let clients = 0
  let isWaiting: boolean = false
  const next = (): void => {
    if (isWaiting || clients >= MAX_CLIENTS) return
    isWaiting = true
    const client = link.connect('broker-client')
    client.opened.then(
      () => {
        isWaiting = false
        clients++
        // The exec daemon ends the channel. One that does not gets no further client.
        void client.ended.then(() => {
          clients--
          next()
        })
        void serve(client, brokerDir)
        next()
      },
      () => undefined,
    )
  }
  next()
}

async function serve(client: ChannelSocket, brokerDir: string): Promise<void> {
  const stream = new ByteStream(client)
  for (const began = performance.now(); !stream.closed; await Bun.sleep(RETRY_MS)) {
    const fd = connectTo(brokerDir)
    if (fd !== undefined) {
      await joinStreams(stream, new ByteStream(adopt(fd)))
      return
    }
    if (performance.now() - began > TIMEOUT_MS) stream.reset()
  }
}

/** Undefined when the broker does not listen, or has no room now. */
function connectTo(brokerDir: string): number | undefined {
  // A socket's path is limited to 107 bytes. The path through the open directory is short.
  const opened = openSync(brokerDir, 'r')
  const fd = systemCall('socket', AF.unix, SOCK.stream | SOCK.cloexec | SOCK.nonblock, 0)
  const name = unixName(`/proc/self/fd/${opened}/${basename(BROKER_SOCKET)}`)
  const result = tryCall('connect', fd, name, name.length)
  close(opened)
  if (result === 0) return fd
  close(fd)
  return undefined
}

function adopt(fd: number): TcpSocket {
  const socket = new TcpSocket()
  const options = { fd, allowHalfOpen: true, data: socket, socket: TcpSocket.handlers }
  Bun.connect(options as unknown as Bun.UnixSocketOptions<TcpSocket>).catch(() => undefined)
  return socket
}
