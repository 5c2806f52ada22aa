/** A lying name server. It records every question: a refused name must never be among them. */
import { createSocket, type Socket } from 'node:dgram'

export type Lie =
  | 'truncated'
  | 'other-id'
  | 'other-question'
  | 'loop'
  | 'silent'
  | 'servfail'
  | 'nxdomain'
  | 'pointer-loop'

export interface Zone {
  readonly a?: readonly string[] | (() => readonly string[])
  readonly aaaa?: readonly string[]
  readonly cname?: string
  readonly ttl?: number
  readonly lie?: Lie
}

export class DnsServer {
  readonly questions: string[] = []
  onQuestion: (name: string) => void = () => undefined
  readonly #socket: Socket
  readonly #zones: Readonly<Record<string, Zone>>

  private constructor(zones: Readonly<Record<string, Zone>>) {
    this.#zones = zones
    this.#socket = createSocket('udp4')
    this.#socket.on('error', () => undefined)
    this.#socket.on('message', (query, from) => {
      const reply = this.#reply(query)
      if (reply !== undefined) this.#socket.send(reply, from.port, from.address)
    })
  }

  static start(
    zones: Readonly<Record<string, Zone>>,
    { port = 0, address = '127.0.0.1' }: { readonly port?: number; readonly address?: string } = {},
  ): Promise<DnsServer> {
    const server = new DnsServer(zones)
    return new Promise(resolve => server.#socket.bind(port, address, () => resolve(server)))
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  close(): void {
    this.#socket.close()
  }

  #reply(query: Buffer): Buffer | undefined {
    const { name, end } = readName(query)
    const type = query.readUInt16BE(end)
    this.questions.push(name)
    this.onQuestion(name)
    const zone = this.#zones[name]
    const question = query.subarray(12, end + 4)
    if (zone?.lie === 'silent') return undefined
    const answers = zone === undefined ? [] : answersOf(name, zone, type, this.#zones)
    const code = zone === undefined || zone.lie === 'nxdomain' ? 3 : zone.lie === 'servfail' ? 2 : 0
    const header = Buffer.alloc(12)
    header.writeUInt16BE(query.readUInt16BE(0) ^ (zone?.lie === 'other-id' ? 0xffff : 0), 0)
    header.writeUInt16BE(0x8180 | code | (zone?.lie === 'truncated' ? 0x200 : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(zone?.lie === 'truncated' ? 0 : answers.length, 6)
    const asked =
      zone?.lie === 'other-question' ? Buffer.concat([spell('other.test'), question.subarray(-4)]) : question
    return Buffer.concat([header, asked, ...(zone?.lie === 'truncated' ? [] : answers)])
  }
}

function answersOf(name: string, zone: Zone, type: number, zones: Readonly<Record<string, Zone>>): Buffer[] {
  const ttl = zone.ttl ?? 60
  if (zone.lie === 'loop') return [record(spell(name), 5, ttl, spell(name))]
  // A name that points at itself within the message.
  if (zone.lie === 'pointer-loop')
    return [record(Buffer.from([0xc0, 12 + spell(name).length + 4]), type, ttl, Buffer.alloc(4))]
  const target = zone.cname === undefined ? zone : (zones[zone.cname] ?? {})
  const owner = spell(zone.cname ?? name)
  const chain = zone.cname === undefined ? [] : [record(spell(name), 5, ttl, owner)]
  const a = typeof target.a === 'function' ? target.a() : (target.a ?? [])
  const found = type === 1 ? a.map(v4) : type === 28 ? (target.aaaa ?? []).map(v6) : []
  return [...chain, ...found.map(data => record(owner, type, ttl, data))]
}

function record(owner: Buffer, type: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([owner, fixed, data])
}

const spell = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map(label => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.alloc(1),
  ])

const v4 = (text: string): Buffer => Buffer.from(text.split('.').map(Number))

/** Fully written groups only: `2001:db8:0:0:0:0:0:1`. */
const v6 = (text: string): Buffer =>
  Buffer.concat(text.split(':').map(group => Buffer.from(group.padStart(4, '0'), 'hex')))

function readName(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}
