/** `pen __knock`: connects from inside the network namespace of a door, as a program in a sandbox would. */
import { writeSync } from 'node:fs'
import { connect } from 'node:net'
import { askServer } from './host-dns.ts'

export const KNOCK_MODE = '__knock'
/** A reserved name. The door refuses it without a lookup. */
export const KNOCK_NAME = 'doctor.example'
export const KNOCK_PORT = 443

export interface KnockResult {
  readonly address: string | undefined
  /** The first line of the response. */
  readonly response: string
}

const TIME_LIMIT_MS = 3000

export async function knock(): Promise<number> {
  const address = (await askServer('127.0.0.1', KNOCK_NAME, TIME_LIMIT_MS))?.address
  const result: KnockResult = { address, response: address === undefined ? '' : await dial(address) }
  writeSync(1, JSON.stringify(result))
  return 0
}

async function dial(address: string): Promise<string> {
  return await new Promise(resolve => {
    const socket = connect(KNOCK_PORT, address)
    let received = ''
    const done = (): void => {
      socket.destroy()
      resolve(received.split('\r\n', 1)[0] ?? '')
    }
    socket.setTimeout(TIME_LIMIT_MS, done)
    socket.once('connect', () => socket.write(`GET / HTTP/1.1\r\nHost: ${KNOCK_NAME}\r\n\r\n`))
    socket.on('data', (data: Buffer) => {
      received += data.toString('latin1')
    })
    socket.once('error', done)
    socket.once('close', done)
  })
}
