/** Sends one DNS query over UDP. The system's resolver would answer from files and caches. */
import { createSocket } from 'node:dgram'
import { isIPv6 } from '../policy/network/address.ts'

export type DnsReply =
  /** Any answer counts; `address` is set if the answer has one. */
  { readonly answered: true; readonly address: string | undefined } | { readonly answered: false }

export function question(name: string, id: number): Buffer {
  const labels = name
    .split('.')
    .map(label => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(0x0100, 2)
  head.writeUInt16BE(1, 4)
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, 1, 0, 1])])
}

/** Undefined if this is no answer to that query. Reads only the first record, right after the question. */
export function readReply(reply: Buffer, asked: Buffer): DnsReply | undefined {
  if (reply.length < 12 || reply.readUInt16BE(0) !== asked.readUInt16BE(0)) return undefined
  if ((reply.readUInt16BE(2) & 0x8000) === 0) return undefined
  const at = asked.length
  const has = reply.readUInt16BE(6) > 0 && reply.length >= at + 16 && reply.readUInt16BE(at + 2) === 1
  const bytes = has ? [...reply.subarray(at + 12, at + 16)] : []
  return { answered: true, address: has ? bytes.join('.') : undefined }
}

export async function askServer(server: string, name: string, timeoutMs: number): Promise<DnsReply> {
  const asked = question(name, Math.floor(Math.random() * 0x10000))
  return await new Promise(resolve => {
    const socket = createSocket(isIPv6(server as never) ? 'udp6' : 'udp4')
    const done = (reply: DnsReply): void => {
      clearTimeout(timer)
      socket.close()
      resolve(reply)
    }
    const timer = setTimeout(done, timeoutMs, { answered: false })
    socket.on('message', bytes => {
      const reply = readReply(bytes, asked)
      if (reply !== undefined) done(reply)
    })
    socket.once('error', () => done({ answered: false }))
    // A connected socket reports a missing server at once.
    socket.connect(53, server, () => socket.send(asked))
  })
}
