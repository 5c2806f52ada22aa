/**
 * Opens a door and runs one command behind it, as pen does, but with a gateway that only reports what arrives.
 * Compiled, so that an ordinary user can run it too: `driver '{"ports":[443]}' command…`. Prints one JSON
 * document per line.
 */
import { readlinkSync, writeSync } from 'node:fs'
import { openDoor } from '../../src/gateway/netns/door.ts'
import { runDoorMode } from '../../src/gateway/netns/door-mode.ts'
import type { StreamSocket } from '../../src/gateway/stream/stream-socket.ts'
import { silent } from '../gateway/listen.ts'

export interface DriverOptions {
  readonly ports: readonly number[]
  readonly connections?: number
  /** The user that root runs the command as. */
  readonly runAs?: { readonly uid: number; readonly gid: number }
  /** Connections are answered and counted, not reported one by one. */
  readonly quiet?: boolean
}

function say(socket: StreamSocket, word: string): void {
  socket.attach(silent)
  socket.write(Buffer.from(word))
  socket.end()
}

const tell = (event: object): void => void writeSync(1, `${JSON.stringify(event)}\n`)

async function drive(options: DriverOptions, command: readonly string[]): Promise<number> {
  const door = await openDoor(options)
  const { recordsRefusals, ipv6, proxy } = door
  let dialled = 0
  let rejected = 0
  await door.serve(
    {
      dialled: (socket, to) => {
        dialled += 1
        if (options.quiet !== true) tell({ event: 'dialled', ...to })
        socket.attach({ ...silent, end: () => socket.end() })
        socket.write(Buffer.from('door'))
        if (options.connections === undefined) socket.end()
      },
      proxied: socket => {
        tell({ event: 'proxied' })
        say(socket, 'proxy')
      },
      queryStream: socket => {
        tell({ event: 'query-stream' })
        say(socket, 'dns')
      },
      queries: socket => {
        socket.on('error', () => {})
        socket.on('message', (_, from) => socket.send('dns', from.port, from.address))
      },
      rejected: () => {
        rejected += 1
      },
    },
    options.connections === undefined ? undefined : { connections: options.connections },
  )
  const child = door.within(() =>
    Bun.spawn([...door.wrap, ...command], {
      stdio: ['ignore', 'inherit', 'inherit'],
      ...(options.runAs ?? {}),
    }),
  )
  tell({
    event: 'open',
    recordsRefusals,
    ipv6,
    proxy,
    child: child.pid,
    home: readlinkSync('/proc/self/ns/net'),
  })
  const code = await child.exited
  tell({ event: 'refused', datagrams: await door.refusedDatagrams() })
  tell({ event: 'counted', dialled, rejected })
  door.close()
  return code
}

const [first = '{}', ...rest] = process.argv.slice(2)
process.exitCode =
  first === '__door' ? runDoorMode(rest) : await drive(JSON.parse(first) as DriverOptions, rest)
