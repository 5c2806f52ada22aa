/**
 * pen's gateway beside squid, tinyproxy, mitmproxy and sandbox-runtime: start, throughput, connections,
 * latency, many tunnels, memory, a soak. Everything runs in its own network namespace; the outside is a
 * TEST-NET address on its loopback. pen is measured through its door (`pen run -- client`), and judges and
 * records every connection. The others are used by CONNECT (egress/peers.ts says what they do).
 *
 *   bun bench/egress.ts [--json] [--rounds=N] [--only=start,get,put,connections,latency,opened,hold,soak,dns] [--without-peers]
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ALLOW_OPENED, makeCertificates, startOpeners } from './egress/opened.ts'
import { connections, holdOpen, latency, soak, throughput } from './egress/parts.ts'
import { type Absent, installPeers, type Peer, startPeers } from './egress/peers.ts'
import { type Opened, printReport, type Report } from './egress/report.ts'
import { measureStart } from './egress/startup.ts'
import { direct, type Place, throughPeer, throughPen } from './egress/ways.ts'
import { compileLoad, enterNamespace, HOST, startServer } from './egress/world.ts'

const flag = (name: string): string | undefined =>
  process.argv.find(word => word.startsWith(`--${name}=`))?.slice(name.length + 3)
const has = (name: string): boolean => process.argv.includes(`--${name}`)
const wants = (part: string): boolean => flag('only')?.split(',').includes(part) ?? true

const PEN = flag('pen') ?? join(import.meta.dir, '../dist/pen')
const ROUNDS = Number(flag('rounds') ?? 7)
const SOAK = 100_000

async function inside(directory: string): Promise<Report> {
  const project = join(directory, 'project')
  mkdirSync(project)
  const load = join(project, 'load')
  cpSync(compileLoad(directory), load)
  const server = await startServer(load, join(directory, 'server.crt'), join(directory, 'server.key'))
  const peers = has('without-peers') ? [] : await startPeers(directory)
  const openers = has('without-peers') ? [] : await startOpeners(directory, join(directory, 'outside.crt'))
  const running = peers.flatMap(peer => ('port' in peer ? [peer] : []))
  const pen = throughPen(PEN)
  const ways = [direct, pen, ...running.map(throughPeer)]
  const place = { load, project, host: HOST }
  const part = async <T>(name: string, measure: () => Promise<T> | T): Promise<T | undefined> => {
    if (!wants(name)) return undefined
    if (process.stderr.isTTY) process.stderr.write(`${name}…\n`)
    return await measure()
  }
  try {
    return {
      load: loadavg(),
      absent: [...peers, ...openers].flatMap(peer => ('why' in peer ? [peer] : [])),
      start: await part('start', () => measureStart(PEN, directory, project, ROUNDS * 3)),
      get: await part('get', () => throughput(ways, place, ROUNDS, 'get')),
      put: await part('put', () => throughput(ways, place, ROUNDS, 'put')),
      one: await part('connections', () => connections(ways, place, ROUNDS, 1)),
      eight: await part('connections', () => connections(ways, place, ROUNDS, 8)),
      latency: await part('latency', () => latency(ways, place, ROUNDS)),
      opened: await part('opened', () => measureOpened(openers, { ...place, host: `https://${HOST}` })),
      held1000: await part('hold', () => holdOpen(pen, place, 1000)),
      held5000: await part('hold', () => holdOpen(pen, place, 5000)),
      soak: await part('soak', () => soak(pen, place, SOAK)),
      dns: await part('dns', answersPerSecond),
    }
  } finally {
    for (const peer of [...peers, ...openers]) if ('stop' in peer) peer.stop()
    server.stop()
  }
}

async function measureOpened(openers: readonly (Peer | Absent)[], place: Place): Promise<Opened> {
  const running = openers.flatMap(peer => ('port' in peer ? [peer] : []))
  const ways = [direct, throughPen(PEN, ALLOW_OPENED), ...running.map(throughPeer)]
  return {
    // Long ones: pen begins cold in each round, and the peers are warm.
    get: await throughput(ways, place, ROUNDS, 'get', 4),
    put: await throughput(ways, place, ROUNDS, 'put', 2),
    new: await connections(ways, place, ROUNDS, 1),
    latency: await latency(ways, place, ROUNDS),
  }
}

function answersPerSecond(): number {
  const { stdout } = Bun.spawnSync([process.execPath, join(import.meta.dir, 'dns.ts'), '--json'])
  return (JSON.parse(stdout.toString()) as { answersPerSecond: { loopback: number } }).answersPerSecond
    .loopback
}

const within = flag('inside')
if (within !== undefined) printReport(await inside(within), has('json'))
else {
  const directory = mkdtempSync(join(tmpdir(), 'pen-egress-'))
  try {
    // squid drops root and still reads its configuration.
    Bun.spawnSync(['chmod', '755', directory])
    if (!has('without-peers')) installPeers(directory)
    const argv = [process.execPath, import.meta.path, ...process.argv.slice(2), `--inside=${directory}`]
    process.exitCode = enterNamespace(argv, directory, makeCertificates(directory).authority)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
