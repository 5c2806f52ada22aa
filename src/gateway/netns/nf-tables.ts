/**
 * Encodes nf_tables, the kernel's packet filter, as netlink messages: tables, chains, sets, and rules of expressions.
 * The kernel evaluates the expressions of a rule in order. The first one that does not match ends the rule.
 */
import { MessageWriter, NLM_F } from '../../base/kernel/netlink.ts'

const SUBSYSTEM = 10
const NEW = { table: 0, chain: 3, rule: 6, set: 9 } as const
const BATCH = { begin: 16, end: 17 } as const
const FAMILY = { unspecified: 0, inet: 1, ip: 2, ip6: 10 } as const
const NF_ACCEPT = 1
const NFT_RETURN = -5
const MOST_BYTES = 16_384

/** `exclusive` refuses a table that exists already. `append` keeps rules in order. */
const HOW: Partial<Record<keyof typeof NEW, number>> = { table: NLM_F.exclusive, rule: NLM_F.append }

/** Attribute numbers of `linux/netfilter/nf_tables.h`. */
const TABLE = { name: 1 } as const
const CHAIN = { table: 1, name: 3, hook: 4, policy: 5, type: 7 } as const
const HOOK = { number: 1, priority: 2 } as const
const SET = { table: 1, name: 2, flags: 3, keyType: 4, keyLength: 5, description: 9, id: 10 } as const
const SET_SIZE = 1
const RULE = { table: 1, chain: 2, expressions: 4 } as const
const LISTED = 1
const EXPRESSION = { name: 1, data: 2 } as const
const DATA = { value: 1, verdict: 2 } as const
const VERDICT_CODE = 1
const META = { into: 1, key: 2 } as const
const CT = { into: 1, key: 2 } as const
const PAYLOAD = { into: 1, base: 2, offset: 3, length: 4 } as const
const COMPARE = { register: 1, operator: 2, data: 3 } as const
const IMMEDIATE = { into: 1, data: 2 } as const
const NAT = { type: 1, family: 2, address: 3, port: 5, flags: 7 } as const
const REJECT = { type: 1, code: 2 } as const
const DYNAMIC_SET = { name: 1, id: 2, operation: 3, key: 4 } as const

export type Family = 'ip' | 'ip6'
export type Protocol = 'tcp' | 'udp'

/** One message of a batch. The kernel applies a batch as a whole or not at all. */
export interface Change {
  readonly what: keyof typeof NEW
  readonly write: Expression
}

export type Expression = (to: MessageWriter) => void

/** The kernel acknowledges the last message, or answers the first one that fails. */
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

export const table = (name: string): Change => ({ what: 'table', write: to => to.text(TABLE.name, name) })

export interface Hook {
  readonly type: 'nat' | 'filter'
  readonly at: keyof typeof POINT
  readonly priority: number
}

const POINT = { input: 1, output: 3 } as const

/** Packets that match no rule are accepted. */
export const chain = (of: string, name: string, { type, at, priority }: Hook): Change => ({
  what: 'chain',
  write: to => {
    to.text(CHAIN.table, of)
    to.text(CHAIN.name, name)
    to.nested(CHAIN.hook, () => {
      to.number(HOOK.number, POINT[at])
      to.number(HOOK.priority, priority)
    })
    to.number(CHAIN.policy, NF_ACCEPT)
    to.text(CHAIN.type, type)
  },
})

const NFT_SET_EVAL = 0x20
/** Type numbers of `nft` for the parts of a key. The kernel stores them for tools that list the set. */
const KEY = { ip: { type: 7, bytes: 4 }, ip6: { type: 8, bytes: 16 }, port: { type: 13, bytes: 4 } } as const

export interface DestinationSet {
  readonly name: string
  readonly family: Family
  /** Rules of the same batch refer to the set by this id. */
  readonly id: number
}

/** A set of addresses and ports, to which rules add elements. */
export const destinations = (of: string, { name, family, id }: DestinationSet, size: number): Change => ({
  what: 'set',
  write: to => {
    to.text(SET.table, of)
    to.text(SET.name, name)
    to.number(SET.flags, NFT_SET_EVAL)
    to.number(SET.keyType, (KEY[family].type << 6) | KEY.port.type)
    to.number(SET.keyLength, KEY[family].bytes + KEY.port.bytes)
    to.nested(SET.description, () => to.number(SET_SIZE, size))
    to.number(SET.id, id)
  },
})

export const rule = (of: string, inChain: string, ...expressions: readonly Expression[]): Change => ({
  what: 'rule',
  write: to => {
    to.text(RULE.table, of)
    to.text(RULE.chain, inChain)
    to.nested(RULE.expressions, () => {
      for (const write of expressions) write(to)
    })
  },
})

const all =
  (...expressions: readonly Expression[]): Expression =>
  to => {
    for (const write of expressions) write(to)
  }

/** A kernel expression with its number attributes, and further attributes from `more`. */
const expression =
  (name: string, given: Readonly<Record<number, number>>, more?: Expression): Expression =>
  to =>
    to.nested(LISTED, () => {
      to.text(EXPRESSION.name, name)
      to.nested(EXPRESSION.data, () => {
        for (const [type, value] of Object.entries(given)) to.number(Number(type), value)
        more?.(to)
      })
    })

/** Registers pass values between expressions. Low numbers hold 16 bytes, from 8 on 4 bytes. */
const REGISTER = { verdict: 0, first: 1, second: 2, secondWord: 9 } as const
const BASE = { network: 1, transport: 2 } as const
const ADDRESS = { ip: { at: 16, bytes: 4 }, ip6: { at: 24, bytes: 16 } } as const
const PORT = { at: 2, bytes: 2 } as const
const META_KEY = { family: 15, protocol: 16 } as const
const CT_DIRECTION = 1
const EQUAL = 0

type Bytes = readonly number[]

const equals = (bytes: Bytes): Expression =>
  expression('cmp', { [COMPARE.register]: REGISTER.first, [COMPARE.operator]: EQUAL }, to =>
    to.nested(COMPARE.data, () => to.bytes(DATA.value, bytes)),
  )

const meta = (key: number, byte: number): Expression =>
  all(expression('meta', { [META.into]: REGISTER.first, [META.key]: key }), equals([byte]))

const load = (base: keyof typeof BASE, at: number, bytes: number, register: number): Expression =>
  expression('payload', {
    [PAYLOAD.into]: register,
    [PAYLOAD.base]: BASE[base],
    [PAYLOAD.offset]: at,
    [PAYLOAD.length]: bytes,
  })

const put = (register: number, bytes: Bytes): Expression =>
  expression('immediate', { [IMMEDIATE.into]: register }, to =>
    to.nested(IMMEDIATE.data, () => to.bytes(DATA.value, bytes)),
  )

const verdict = (code: number): Expression =>
  expression('immediate', { [IMMEDIATE.into]: REGISTER.verdict }, to =>
    to.nested(IMMEDIATE.data, () => to.nested(DATA.verdict, () => to.number(VERDICT_CODE, code))),
  )

const inNetworkOrder = (port: number): Bytes => [port >> 8, port & 255]

export const ofFamily = (family: Family): Expression => meta(META_KEY.family, FAMILY[family])

export const ofProtocol = (protocol: Protocol): Expression =>
  meta(META_KEY.protocol, protocol === 'tcp' ? 6 : 17)

export const toPort = (protocol: Protocol, port: number): Expression =>
  all(
    ofProtocol(protocol),
    load('transport', PORT.at, PORT.bytes, REGISTER.first),
    equals(inNetworkOrder(port)),
  )

/** Matches every address that begins with these bytes. */
export const toAddress = (family: Family, first: Bytes): Expression =>
  all(ofFamily(family), load('network', ADDRESS[family].at, first.length, REGISTER.first), equals(first))

export const isReply: Expression = all(
  expression('ct', { [CT.into]: REGISTER.first, [CT.key]: CT_DIRECTION }),
  equals([1]),
)

export const accept: Expression = verdict(NF_ACCEPT)
/** Ends the chain. Its policy, accept, then applies. */
export const leave: Expression = verdict(NFT_RETURN)

const DNAT = 1
const PORT_IS_GIVEN = 2

/** Redirects to another port of the dialled address. */
export const redirectPort = (port: number): Expression =>
  all(
    put(REGISTER.first, inNetworkOrder(port)),
    expression('nat', {
      [NAT.type]: DNAT,
      [NAT.family]: FAMILY.inet,
      [NAT.port]: REGISTER.first,
      [NAT.flags]: PORT_IS_GIVEN,
    }),
  )

/** Redirects to another address and port. Packets of the other family pass unchanged. */
export const redirect = (family: Family, address: Bytes, port: number): Expression =>
  all(
    put(REGISTER.first, address),
    put(REGISTER.second, inNetworkOrder(port)),
    expression('nat', {
      [NAT.type]: DNAT,
      [NAT.family]: FAMILY[family],
      [NAT.address]: REGISTER.first,
      [NAT.port]: REGISTER.second,
      [NAT.flags]: PORT_IS_GIVEN,
    }),
  )

const reject = (type: number, code: number): Expression =>
  expression('reject', { [REJECT.type]: type }, to => to.bytes(REJECT.code, [code]))

const REJECT_BY = { reset: 1, icmpOfFamily: 2 } as const
const PORT_UNREACHABLE = 1

export const reset: Expression = reject(REJECT_BY.reset, 0)
/** ICMP or ICMPv6 "port unreachable". */
export const unreachable: Expression = reject(REJECT_BY.icmpOfFamily, PORT_UNREACHABLE)

const ADD = 0

/** Adds the destination of the packet to the set. A full set ends the rule. */
export const addDestination = ({ name, family, id }: DestinationSet): Expression =>
  all(
    load('network', ADDRESS[family].at, ADDRESS[family].bytes, REGISTER.first),
    load('transport', PORT.at, PORT.bytes, family === 'ip' ? REGISTER.secondWord : REGISTER.second),
    expression('dynset', {}, to => {
      to.text(DYNAMIC_SET.name, name)
      to.number(DYNAMIC_SET.id, id)
      to.number(DYNAMIC_SET.operation, ADD)
      to.number(DYNAMIC_SET.key, REGISTER.first)
    }),
  )
