/**
 * Asks the kernel which UDP destinations the rules refused, over nfnetlink. An external program would take longer than
 * a short sandbox lives. The sandbox chose the addresses and ports; the kernel wrote the messages.
 */
import {
  dump,
  isLast,
  MessageWriter,
  type NetlinkMessage,
  NLM_F,
  readAttributes,
} from '../../base/kernel/netlink.ts'
import { type Address, printAddress } from '../../policy/network/address.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import { REFUSED_SETS, TABLE } from './rules.ts'

export interface RefusedDatagram {
  readonly address: Address
  readonly port: Port
}

const GET_ELEMENTS = (10 << 8) | 13
const NEW_ELEMENTS = (10 << 8) | 12
const NFPROTO_INET = 1
/** Size of `struct nfgenmsg`: family, version and generation number. */
const NFGENMSG = 4
const ATTRIBUTE = { table: 1, set: 2, elements: 3, element: 1, key: 1, value: 1 } as const
const MAX_TRIES = 4

/** Throws when the kernel does not answer, because an unreadable set is not an empty one. */
export function listRefused(socket: number): readonly RefusedDatagram[] {
  const found = new Map<string, RefusedDatagram>()
  for (const set of REFUSED_SETS)
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { refused, isInterrupted } = readRefused(dump('list the refused', socket, requestFor(set)))
      for (const one of refused) found.set(`${one.address} ${one.port}`, one)
      if (!isInterrupted) break
    }
  return [...found.values()]
}

/** `isInterrupted`: the set changed while it was read. */
export function readRefused(messages: Iterable<NetlinkMessage>) {
  const refused: RefusedDatagram[] = []
  let isInterrupted: boolean = false
  for (const message of messages) {
    if ((message.flags & NLM_F.dumpInterrupted) !== 0) isInterrupted = true
    if (isLast(message) || message.type !== NEW_ELEMENTS) continue
    for (const list of inner(message.body.subarray(NFGENMSG), ATTRIBUTE.elements))
      for (const element of inner(list, ATTRIBUTE.element)) refused.push(readElement(element))
  }
  return { refused, isInterrupted }
}

function readElement(element: Uint8Array): RefusedDatagram {
  const value = [...inner(element, ATTRIBUTE.key)].flatMap(key => [...inner(key, ATTRIBUTE.value)])[0]
  // Each part of a key is padded to four bytes.
  const addressSize = value?.length === 8 ? 4 : 16
  const port = parsePort(String(((value?.[addressSize] ?? 0) << 8) | (value?.[addressSize + 1] ?? 0)))
  if (value?.length !== addressSize + 4 || !port.ok)
    throw new TypeError('an element of the set of refused datagrams is not an address and a port')
  return { address: printAddress([...value.subarray(0, addressSize)]), port: port.value }
}

/** The values of all attributes of one type. */
function* inner(bytes: Uint8Array, wanted: number): Generator<Uint8Array> {
  for (const [type, value] of readAttributes(bytes)) if (type === wanted) yield value
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
