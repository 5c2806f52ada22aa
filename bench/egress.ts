/**
 * pen's gateway beside squid, tinyproxy, mitmproxy and sandbox-runtime: start, throughput, connections,
 * latency, many tunnels, memory, a soak. Everything runs in its own network namespace; the outside is a
 * TEST-NET address on its loopback. pen is measured through its door (`pen run -- client`), and judges and
 * records every connection. The others are used by CONNECT (egress/peers.ts says what they do).
 *
 *   bun bench/egress.ts [--json] [--rounds=N] [--only=start,get,put,connections,latency,hold,soak,dns] [--without-peers]
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { connections, holdOpen, latency, soak, throughput } from './egress/parts.ts'
import { installPeers, startPeers } from './egress/peers.ts'
import { printReport, type Report } from './egress/report.ts'
import { measureStart } from './egress/startup.ts'
import { direct, throughPeer, throughPen } from './egress/ways.ts'
import { compileLoad, enterNamespace, startServer } from './egress/world.ts'

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
  const server = await startServer(load)
  const peers = has('without-peers') ? [] : await startPeers(directory)
  const running = peers.flatMap(peer => ('port' in peer ? [peer] : []))
  const pen = throughPen(PEN)
  const ways = [direct, pen, ...running.map(throughPeer)]
  const place = { load, project }
  const part = async <T>(name: string, measure: () => Promise<T> | T): Promise<T | undefined> => {
    if (!wants(name)) return undefined
    if (process.stderr.isTTY) process.stderr.write(`${name}…\n`)
    return await measure()
  }
  try {
    return {
      load: loadavg(),
      absent: peers.flatMap(peer => ('why' in peer ? [peer] : [])),
      start: await part('start', () => measureStart(PEN, directory, project, ROUNDS * 3)),
      get: await part('get', () => throughput(ways, place, ROUNDS, 'get')),
      put: await part('put', () => throughput(ways, place, ROUNDS, 'put')),
      one: await part('connections', () => connections(ways, place, ROUNDS, 1)),
      eight: await part('connections', () => connections(ways, place, ROUNDS, 8)),
      latency: await part('latency', () => latency(ways, place, ROUNDS)),
      held1000: await part('hold', () => holdOpen(pen, place, 1000)),
      held5000: await part('hold', () => holdOpen(pen, place, 5000)),
      soak: await part('soak', () => soak(pen, place, SOAK)),
      dns: await part('dns', answersPerSecond),
    }
  } finally {
    for (const peer of running) peer.stop()
    server.stop()
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
    process.exitCode = enterNamespace(argv, directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
