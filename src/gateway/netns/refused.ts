/**
 * Asks the kernel which UDP destinations the rules refused, by its own messages (nfnetlink): a program to ask for us
 * would take longer than a short sandbox lives. The sandbox chose the elements, the kernel wrote the messages.
 */
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { type Address, printAddress } from '../../policy/network/address.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import { HEADER, MessageWriter, MSG_DONTWAIT, NLM_F, NLMSG_ERROR } from './netlink.ts'
import { REFUSED_SETS, TABLE } from './rules.ts'

export interface RefusedDatagram {
  readonly address: Address
  readonly port: Port
}

const GET_ELEMENTS = (10 << 8) | 13
const NEW_ELEMENTS = (10 << 8) | 12
const NLM_F_DUMP_INTERRUPTED = 0x10
const NLMSG_DONE = 3
const NFPROTO_INET = 1
/** What follows the header of a message about the packet filter: family, version, number of the table's generation. */
const FAMILY = 4
const ATTRIBUTE = { table: 1, set: 2, elements: 3, element: 1, key: 1, value: 1 } as const
/** Lowest bits of an attribute's type; the others say how it is stored. */
const TYPE_MASK = 0x3fff
const MOST_TRIES = 4

/** Throws when the kernel does not answer: a record that cannot be read is not an empty one. */
export function listRefused(socket: number): readonly RefusedDatagram[] {
  const found = new Map<string, RefusedDatagram>()
  for (const set of REFUSED_SETS)
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { refused, isWhole } = ask(socket, set)
      for (const one of refused) found.set(`${one.address} ${one.port}`, one)
      if (isWhole) break
    }
  return [...found.values()]
}

function ask(socket: number, set: string): { refused: RefusedDatagram[]; isWhole: boolean } {
  const request = requestFor(set)
  succeeded('ask for the refused', tryCall('sendto', socket, request, request.length, 0))
  const refused: RefusedDatagram[] = []
  let isWhole: boolean = true
  const buffer = new Uint8Array(65_536)
  for (;;) {
    const size = succeeded(
      'hear the refused',
      tryCall('recvfrom', socket, buffer, buffer.length, MSG_DONTWAIT),
    )
    const read = readMessages(buffer.subarray(0, size))
    refused.push(...read.refused)
    if (read.isInterrupted) isWhole = false
    if (read.isLast) return { refused, isWhole }
  }
}

export interface Messages {
  readonly refused: readonly RefusedDatagram[]
  readonly isLast: boolean
  /** The set changed while it was read. */
  readonly isInterrupted: boolean
}

export function readMessages(bytes: Uint8Array): Messages {
  const refused: RefusedDatagram[] = []
  let isLast: boolean = false
  let isInterrupted: boolean = false
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const size = view.getUint32(at, true)
    if (size < HEADER || at + size > bytes.length) throw new TypeError('a message of the kernel is cut off')
    const type = view.getUint16(at + 4, true)
    if ((view.getUint16(at + 6, true) & NLM_F_DUMP_INTERRUPTED) !== 0) isInterrupted = true
    if (type === NLMSG_ERROR) throw new CallFailed('list the refused', -view.getInt32(at + HEADER, true))
    if (type === NLMSG_DONE) isLast = true
    if (type === NEW_ELEMENTS)
      for (const list of inner(bytes.subarray(at + HEADER + FAMILY, at + size), ATTRIBUTE.elements))
        for (const element of inner(list, ATTRIBUTE.element)) refused.push(readElement(element))
    at += (size + 3) & ~3
  }
  return { refused, isLast, isInterrupted }
}

function readElement(element: Uint8Array): RefusedDatagram {
  const value = [...inner(element, ATTRIBUTE.key)].flatMap(key => [...inner(key, ATTRIBUTE.value)])[0]
  // Each part of a key is padded to four bytes.
  const addressSize = value?.length === 8 ? 4 : 16
  const port = parsePort(String(((value?.[addressSize] ?? 0) << 8) | (value?.[addressSize + 1] ?? 0)))
  if (value?.length !== addressSize + 4 || !port.ok)
    throw new TypeError('the kernel named an element that is no address and port')
  return { address: printAddress([...value.subarray(0, addressSize)]), port: port.value }
}

/** The contents of each attribute of that type. */
function* inner(bytes: Uint8Array, type: number): Generator<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at + 4 <= bytes.length; ) {
    const size = view.getUint16(at, true)
    if (size < 4 || at + size > bytes.length) throw new TypeError('an attribute of the kernel is cut off')
    if ((view.getUint16(at + 2, true) & TYPE_MASK) === type) yield bytes.subarray(at + 4, at + size)
    at += (size + 3) & ~3
  }
}

function requestFor(set: string): Uint8Array {
  const to = new MessageWriter(256)
  to.message(GET_ELEMENTS, NLM_F.request | NLM_F.dump, 0, () => {
    to.raw([NFPROTO_INET, 0, 0, 0])
    to.text(ATTRIBUTE.table, TABLE)
    to.text(ATTRIBUTE.set, set)
  })
  return to.written()
}
