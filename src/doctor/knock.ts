/** pen in the namespace of a door that the doctor opened: it dials as a program in a sandbox would. Only pen starts it. */
import { askServer } from './dns-question.ts'

export const KNOCK_MODE = '__knock'
/** Nobody has it, and nobody is asked for it: the door refuses before any look-up. */
export const KNOCK_NAME = 'doctor.example'
export const KNOCK_PORT = 443

export interface Knocked {
  readonly address: string | undefined
  /** The first line that came back. */
  readonly said: string
}

const TIME_LIMIT_MS = 3000

export async function knock(): Promise<number> {
  const reply = await askServer('127.0.0.1', KNOCK_NAME, TIME_LIMIT_MS)
  const address = reply.answered ? reply.address : undefined
  const knocked: Knocked = { address, said: address === undefined ? '' : await dial(address) }
  const { writeSync } = await import('node:fs')
  writeSync(1, JSON.stringify(knocked))
  return 0
}

async function dial(address: string): Promise<string> {
  const { connect } = await import('node:net')
  return await new Promise(resolve => {
    const socket = connect(KNOCK_PORT, address)
    let said = ''
    const done = (): void => {
      socket.destroy()
      resolve(said.split('\r\n', 1)[0] ?? '')
    }
    socket.setTimeout(TIME_LIMIT_MS, done)
    socket.once('connect', () => socket.write(`GET / HTTP/1.1\r\nHost: ${KNOCK_NAME}\r\n\r\n`))
    socket.on('data', (data: Buffer) => {
      said += data.toString('latin1')
    })
    socket.once('error', done)
    socket.once('close', done)
  })
}
