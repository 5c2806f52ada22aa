/** The supervisor's end of a sandbox's port, and QEMU's monitor: what a hostile guest can write to. */
import type { ExecOutput } from '../../src/backend/backend.ts'
import { DaemonLink } from '../../src/backend/daemon-link.ts'
import type { DaemonSocket, DaemonSocketEvents } from '../../src/backend/daemon-socket.ts'
import { encodeReport } from '../../src/protocol/exec-messages.ts'
import { fuzz } from './fuzz.ts'

const BYTES = new TextEncoder().encode('bytes of a stream')
const READY = encodeReport({ kind: 'ready' })
const SETUP = { user: undefined, userDirectories: [], env: [], seccomp: undefined, emptyBounding: false }
const ORDER = { argv: ['true'], cwd: '/', env: [], terminal: undefined }

/** A link with two commands, whose other end sends these bytes. Returns what the supervisor did. */
function receive(input: Uint8Array): { output: number; sent: number; isOpen: boolean } {
  let events: DaemonSocketEvents | undefined
  const seen = { output: 0, sent: 0, isOpen: true }
  const socket = {
    write: (bytes: Uint8Array) => {
      seen.sent += bytes.length
      return bytes.length
    },
    listen: (given: DaemonSocketEvents) => {
      events = given
    },
    close: () => {
      seen.isOpen = false
    },
  }
  const link = new DaemonLink(socket as unknown as DaemonSocket, SETUP)
  link.ready.catch(() => undefined)
  const output: ExecOutput = (_, bytes) => {
    seen.output += bytes.length
    return undefined
  }
  for (let i = 0; i < 2; i++) link.exec(ORDER, output)
  events?.data(input)
  link.close()
  return seen
}

fuzz('a hostile guest’s frames give no more output than bytes, and never break the supervisor', {
  seeds: [
    Buffer.concat([
      READY,
      encodeReport({ kind: 'started', channel: 1 }),
      encodeReport({ kind: 'stdout', channel: 1, bytes: BYTES }),
      encodeReport({ kind: 'stderr', channel: 2, bytes: BYTES }),
      encodeReport({ kind: 'window', channel: 1, bytes: 4096 }),
      encodeReport({ kind: 'exit', channel: 1, how: 'exit', value: 0 }),
      encodeReport({ kind: 'failed', channel: 2, errno: 'ENOENT', reason: 'no such file' }),
    ]),
    Buffer.concat([READY, encodeReport({ kind: 'full' }), encodeReport({ kind: 'started', channel: 2 })]),
  ],
  dictionary: ['\0\0\0\0', '\0\x01\0\0', '\0\x01\0\x01', '\xff\xff\xff\xff', READY],
  maxBytes: 512,
  seconds: 20,
  maxRuns: 100_000,
  run: input => {
    const { output, sent } = receive(input)
    if (output > input.length) throw new Error(`${output} bytes of output from ${input.length}`)
    if (sent > 4096) throw new Error(`${sent} bytes were sent`)
  },
})
