/**
 * The kernel's packet filter (nf_tables) in the words of its own messages: tables, chains, sets, and rules made of expressions. A
 * rule's expressions are gone through in order; the first that does not hold ends the rule.
 */
import { MessageWriter, NLM_F } from './netlink.ts'

const SUBSYSTEM = 10
const NEW = { table: 0, chain: 3, rule: 6, set: 9 } as const
const BATCH = { begin: 16, end: 17 } as const
const FAMILY = { unspecified: 0, inet: 1, ip: 2, ip6: 10 } as const
const NF_ACCEPT = 1
const NFT_RETURN = -5
const MOST_BYTES = 16_384

/** A table that is there already is somebody else's; rules come one after the other. */
const HOW: Partial<Record<keyof typeof NEW, number>> = { table: NLM_F.exclusive, rule: NLM_F.append }

export type Family = 'ip' | 'ip6'
export type Protocol = 'tcp' | 'udp'

/** One of the messages of a request, which is carried out as a whole or not at all. */
export interface Change {
  readonly what: keyof typeof NEW
  readonly write: Expression
}

export type Expression = (to: MessageWriter) => void

/** Only the last is answered when all went well; one that did not is answered before it. */
export function batch(changes: readonly Change[]): Uint8Array<ArrayBuffer> {
  const { request, ack, create } = NLM_F
  const to = new MessageWriter(MOST_BYTES)
  const edge = (type: number, sequence: number): void =>
    to.message(type, request, sequence, () => to.raw([FAMILY.unspecified, 0, 0, SUBSYSTEM]))
  edge(BATCH.begin, 0)
  for (const [i, { what, write }] of changes.entries()) {
    const flags = request | create | (HOW[what] ?? 0) | (i === changes.length - 1 ? ack : 0)
    to.message((SUBSYSTEM << 8) | NEW[what], flags, i + 1, () => {
      to.raw([FAMILY.inet, 0, 0, 0])
      write(to)
    })
  }
  edge(BATCH.end, changes.length + 1)
  return to.written()
}

export const table = (name: string): Change => ({ what: 'table', write: to => to.text(1, name) })

export interface Hook {
  readonly type: 'nat' | 'filter'
  readonly at: keyof typeof HOOK
  readonly priority: number
}

const HOOK = { input: 1, output: 3 } as const

/** What no rule decides is accepted. */
export const chain = (of: string, name: string, { type, at, priority }: Hook): Change => ({
  what: 'chain',
  write: to => {
    to.text(1, of)
    to.text(3, name)
    to.nested(4, () => {
      to.number(1, HOOK[at])
      to.number(2, priority)
    })
    to.number(5, NF_ACCEPT)
    to.text(7, type)
  },
})

const NFT_SET_EVAL = 0x20
/** The numbers of `nft` for what a key consists of: the kernel keeps them for whoever shows the set. */
const KEY = { ip: { type: 7, bytes: 4 }, ip6: { type: 8, bytes: 16 }, port: { type: 13, bytes: 4 } } as const

export interface DestinationSet {
  readonly name: string
  readonly family: Family
  /** By which rules of the same request know it. */
  readonly id: number
}

/** Of addresses and ports, which rules put in. */
export const destinations = (of: string, { name, family, id }: DestinationSet, size: number): Change => ({
  what: 'set',
  write: to => {
    to.text(1, of)
    to.text(2, name)
    to.number(3, NFT_SET_EVAL)
    to.number(4, (KEY[family].type << 6) | KEY.port.type)
    to.number(5, KEY[family].bytes + KEY.port.bytes)
    to.nested(9, () => to.number(1, size))
    to.number(10, id)
  },
})

export const rule = (of: string, inChain: string, ...expressions: readonly Expression[]): Change => ({
  what: 'rule',
  write: to => {
    to.text(1, of)
    to.text(2, inChain)
    to.nested(4, () => {
      for (const write of expressions) write(to)
    })
  },
})

const all =
  (...expressions: readonly Expression[]): Expression =>
  to => {
    for (const write of expressions) write(to)
  }

/** An expression of the kernel's, by its name, with what it is given: numbers by what they mean to it. */
const expression =
  (name: string, given: Readonly<Record<number, number>>, more?: Expression): Expression =>
  to =>
    to.nested(1, () => {
      to.text(1, name)
      to.nested(2, () => {
        for (const [type, value] of Object.entries(given)) to.number(Number(type), value)
        more?.(to)
      })
    })

/** Where an expression leaves what another takes up: sixteen bytes each, or four. */
const REGISTER = { verdict: 0, first: 1, second: 2, secondWord: 9 } as const
const BASE = { network: 1, transport: 2 } as const
const ADDRESS = { ip: { at: 16, bytes: 4 }, ip6: { at: 24, bytes: 16 } } as const
const PORT = { at: 2, bytes: 2 } as const
const META = { family: 15, protocol: 16 } as const
const CT_DIRECTION = 1

type Bytes = readonly number[]

const equals = (bytes: Bytes): Expression =>
  expression('cmp', { 1: REGISTER.first, 2: 0 }, to => to.nested(3, () => to.bytes(1, bytes)))

const meta = (key: number, byte: number): Expression =>
  all(expression('meta', { 1: REGISTER.first, 2: key }), equals([byte]))

const load = (base: keyof typeof BASE, at: number, bytes: number, register: number): Expression =>
  expression('payload', { 1: register, 2: BASE[base], 3: at, 4: bytes })

const put = (register: number, bytes: Bytes): Expression =>
  expression('immediate', { 1: register }, to => to.nested(2, () => to.bytes(1, bytes)))

const verdict = (code: number): Expression =>
  expression('immediate', { 1: REGISTER.verdict }, to =>
    to.nested(2, () => to.nested(2, () => to.number(1, code))),
  )

const inNetworkOrder = (port: number): Bytes => [port >> 8, port & 255]

export const ofFamily = (family: Family): Expression => meta(META.family, FAMILY[family])

export const ofProtocol = (protocol: Protocol): Expression => meta(META.protocol, protocol === 'tcp' ? 6 : 17)

export const toPort = (protocol: Protocol, port: number): Expression =>
  all(
    ofProtocol(protocol),
    load('transport', PORT.at, PORT.bytes, REGISTER.first),
    equals(inNetworkOrder(port)),
  )

/** Any that begins with these bytes. */
export const toAddress = (family: Family, first: Bytes): Expression =>
  all(ofFamily(family), load('network', ADDRESS[family].at, first.length, REGISTER.first), equals(first))

export const isReply: Expression = all(expression('ct', { 1: REGISTER.first, 2: CT_DIRECTION }), equals([1]))

export const accept: Expression = verdict(NF_ACCEPT)
/** To whoever called the chain: here, what no rule decides. */
export const leave: Expression = verdict(NFT_RETURN)

const DNAT = 1
const PORT_IS_GIVEN = 2

/** To another port, at the address that was dialled. */
export const redirectPort = (port: number): Expression =>
  all(
    put(REGISTER.first, inNetworkOrder(port)),
    expression('nat', { 1: DNAT, 2: FAMILY.inet, 5: REGISTER.first, 7: PORT_IS_GIVEN }),
  )

/** To another address and port. Packets of the other family are left alone. */
export const redirect = (family: Family, address: Bytes, port: number): Expression =>
  all(
    put(REGISTER.first, address),
    put(REGISTER.second, inNetworkOrder(port)),
    expression('nat', {
      1: DNAT,
      2: FAMILY[family],
      3: REGISTER.first,
      5: REGISTER.second,
      7: PORT_IS_GIVEN,
    }),
  )

const reject = (type: number, code: number): Expression =>
  expression('reject', { 1: type }, to => to.bytes(2, [code]))

export const reset: Expression = reject(1, 0)
/** "Port unreachable", in the words of the packet's own family. */
export const unreachable: Expression = reject(2, 1)

/** Where the packet goes is put into the set. Where that is full, the rule ends. */
export const note = ({ name, family, id }: DestinationSet): Expression =>
  all(
    load('network', ADDRESS[family].at, ADDRESS[family].bytes, REGISTER.first),
    load('transport', PORT.at, PORT.bytes, family === 'ip' ? REGISTER.secondWord : REGISTER.second),
    expression('dynset', {}, to => {
      to.text(1, name)
      to.number(2, id)
      to.number(3, 0)
      to.number(4, REGISTER.first)
    }),
  )
