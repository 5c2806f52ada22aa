/**
 * How many queries a second the DNS stub answers: in this process, and over loopback UDP with the client in
 * another process. Bounded in time and count. Nothing leaves the machine.
 *
 *   bun bench/dns.ts [--json]
 *
 * Target: 50,000 answers a second over loopback.
 */
import { createSocket } from 'node:dgram'
import { NameTable } from '../src/gateway/dns/names.ts'
import { answerQuery, DnsStub } from '../src/gateway/dns/stub.ts'

const SECONDS = 2
const NAMES = 2000
/** Enough queries in flight to keep both sides busy, few enough to fit the receive buffer. */
const WINDOW = 128

function query(id: number, name: string): Buffer {
  const labels = name.split('.').map(label => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]))
  const header = Buffer.of(id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1)
  const opt = Buffer.of(0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
  return Buffer.concat([header, ...labels, Buffer.of(0, 0, 1, 0, 1), opt])
}

const queries = Array.from({ length: NAMES }, (_, i) => query(i, `host${i}.zone${i % 97}.example.com`))

function inProcess(): number {
  const names = new NameTable()
  const start = performance.now()
  let answered = 0
  while (performance.now() - start < 500)
    for (const one of queries) if (answerQuery(one, names).reply !== undefined) answered++
  return (answered * 1000) / (performance.now() - start)
}

/** Keeps a window of queries in flight. A timer replaces lost answers. */
async function client(port: number): Promise<void> {
  let received = 0
  let sent = 0
  const socket = await Bun.udpSocket({
    connect: { hostname: '127.0.0.1', port },
    socket: {
      data() {
        received++
        if (sent - received < WINDOW / 2) fill()
      },
    },
  })
  const fill = (): void => {
    const batch: Buffer[] = []
    while (sent - received < WINDOW) batch.push(queries[sent++ % NAMES] ?? Buffer.alloc(0))
    socket.sendMany(batch)
  }
  const lost = setInterval(() => {
    sent = received
    fill()
  }, 50)
  fill()
  await Bun.sleep(300)
  const start = performance.now()
  const before = received
  await Bun.sleep(SECONDS * 1000)
  console.log(Math.round(((received - before) * 1000) / (performance.now() - start)))
  clearInterval(lost)
  socket.close()
}

async function overLoopback(): Promise<number> {
  const stub = new DnsStub({
    names: new NameTable(),
    audit: { record() {} },
    limits: { queriesPerSecond: 10_000_000 },
  })
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  stub.serveUdp(socket)
  const asker = Bun.spawn([process.execPath, import.meta.path, '--client', String(socket.address().port)])
  const rate = Number(await new Response(asker.stdout).text())
  stub.close()
  return rate
}

const clientAt = process.argv.indexOf('--client')
if (clientAt > 0) await client(Number(process.argv[clientAt + 1]))
else {
  const result = { inProcess: Math.round(inProcess()), loopback: await overLoopback() }
  if (process.argv.includes('--json')) console.log(JSON.stringify({ answersPerSecond: result }))
  else
    for (const [where, rate] of Object.entries(result))
      console.log(`${where}: ${rate.toLocaleString('en')} answers/s`)
}
