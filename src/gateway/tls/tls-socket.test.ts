import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selfSigned } from '../../../test/gateway/self-signed.ts'

/** The runtime reads its trusted certificates at its start, so this runs in a process of its own. */
const SCRIPT = `
import { connect, createServer as listen } from 'node:net'
import { createServer } from 'node:tls'
const [{ startTls }, { connectTcp }, { ByteStream }] = await Promise.all(
  ['tls/tls-socket.ts', 'dial/tcp-connect.ts', 'stream/byte-stream.ts'].map(file => import(process.env.GATEWAY + file)))
const { key, cert } = JSON.parse(process.env.PAIR)
const server = createServer({ key, cert }, socket => socket.on('error', () => {}).on('data', data => socket.write(data)))
await new Promise(done => server.listen(0, '127.0.0.1', done))
let wire
const tap = listen(client => {
  wire = client.on('error', () => {})
  client.pipe(connect(server.address().port, '127.0.0.1').on('error', () => {})).pipe(client)
})
await new Promise(done => tap.listen(0, '127.0.0.1', done))
const start = async name => {
  const { promise, resolve } = Promise.withResolvers()
  const socket = connectTcp('127.0.0.1', tap.address().port, resolve)
  await promise
  return await startTls(new ByteStream(socket), { name }, 5000)
}
const refused = await start('other.test')
const stream = new ByteStream(await start('proxy.corp.test'))
const sent = Buffer.alloc(3_000_000, 'there and back ')
const pieces = []
void stream.write(sent)
for (let left = sent.length; left > 0 && (stream.held.length > 0 || (await stream.more(5000))); ) {
  pieces.push(stream.consume(stream.held.length))
  left -= pieces.at(-1).length
}
wire.resetAndDestroy()
while (!stream.closed) await Bun.sleep(5)
console.log(JSON.stringify({ refused, same: Buffer.concat(pieces).equals(sent), broken: stream.broken }))
process.exit(0)`

test('TLS to an upstream proxy passes bytes both ways, refuses another name, and shows a reset', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pen-tls-'))
  const pair = selfSigned()
  writeFileSync(join(directory, 'cert.pem'), pair.cert)
  const env = {
    NODE_EXTRA_CA_CERTS: join(directory, 'cert.pem'),
    PAIR: JSON.stringify(pair),
    GATEWAY: join(import.meta.dir, '../'),
  }
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', SCRIPT], { env })
  rmSync(directory, { recursive: true })
  expect(stderr.toString()).toBe('')
  expect(JSON.parse(stdout.toString())).toEqual({
    refused: 'the upstream proxy has no valid certificate',
    same: true,
    broken: true,
  })
})
