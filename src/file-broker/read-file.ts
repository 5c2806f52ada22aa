import { close, closeSync, constants, openSync, read } from 'node:fs'
import { promisify } from 'node:util'
import { MAX_PAYLOAD } from '../protocol/frame.ts'
import type { Exchange } from './exchange.ts'
import type { Access, Operation } from './operation.ts'
import { Refusal } from './refusal.ts'
import { factsOf } from './stat-and-list.ts'

const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants
const readAt = promisify(read)
const closeLater = promisify(close)

/** Reads a part of a file. A file that is replaced meanwhile does not change what is sent. */
export function prepareRead(access: Access, from: number, length: number | null): Operation {
  const place = access.open(access.path)
  try {
    const facts = factsOf(place, access)
    if (facts.kind === 'directory') throw new Refusal('directory')
    // Opens the checked file itself through its descriptor, and only after it is known to be a regular file.
    const fd = openSync(`/proc/self/fd/${place}`, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    const left = Math.max(0, facts.size - from)
    const wanted = Math.min(left, length ?? left)
    return {
      run: async exchange => {
        exchange.send({ kind: 'facts', facts })
        await stream(fd, from, wanted, access, exchange)
      },
      close: () => void closeLater(fd),
    }
  } finally {
    closeSync(place)
  }
}

/** Asynchronous, so that a slow disk delays only this transfer. */
async function stream(
  fd: number,
  from: number,
  wanted: number,
  access: Access,
  exchange: Exchange,
): Promise<void> {
  for (let sent = 0; sent < wanted; ) {
    const room = await exchange.room()
    const piece = Buffer.allocUnsafe(Math.min(MAX_PAYLOAD, room, wanted - sent))
    const { bytesRead } = await readAt(fd, piece, 0, piece.length, from + sent)
    // Checked after the read, which may be slow, so that no byte is sent without a grant.
    access.check()
    if (bytesRead === 0) throw new Refusal('changed')
    exchange.sendData(piece.subarray(0, bytesRead))
    sent += bytesRead
  }
}
