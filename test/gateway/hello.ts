/** ClientHellos, byte by byte, including those that no library would send. */
export interface HelloOptions {
  readonly names?: readonly string[]
  readonly nameType?: number
  readonly extensions?: readonly Buffer[]
  readonly padding?: number
  /** Bytes of the message in each record. */
  readonly perRecord?: number
}

const u16 = (n: number): Buffer => Buffer.from([n >> 8, n & 0xff])
const vector = (body: Buffer): Buffer => Buffer.concat([u16(body.length), body])
export const extension = (type: number, body: Buffer): Buffer => Buffer.concat([u16(type), vector(body)])

export function serverName(names: readonly string[], type = 0): Buffer {
  const entries = names.map(name => Buffer.concat([Buffer.from([type]), vector(Buffer.from(name, 'latin1'))]))
  return extension(0, vector(Buffer.concat(entries)))
}

export function clientHello(options: HelloOptions = {}): Buffer {
  const { names = ['allowed.test'], nameType = 0, extensions = [], padding = 0, perRecord = 16_384 } = options
  const all = [...extensions]
  if (names.length > 0) all.unshift(serverName(names, nameType))
  if (padding > 0) all.push(extension(21, Buffer.alloc(padding)))
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    Buffer.from([0]),
    vector(Buffer.from([0x13, 0x01, 0x13, 0x02])),
    Buffer.from([1, 0]),
    vector(Buffer.concat(all)),
  ])
  const message = Buffer.concat([
    Buffer.from([1, body.length >> 16, (body.length >> 8) & 0xff, body.length & 0xff]),
    body,
  ])
  return records(message, perRecord)
}

export function records(message: Buffer, perRecord = 16_384): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += perRecord) {
    const fragment = message.subarray(at, at + perRecord)
    parts.push(Buffer.from([22, 3, 1]), vector(fragment))
  }
  return Buffer.concat(parts)
}
