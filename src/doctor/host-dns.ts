/** Checks the host's name servers, which look up allowed names. */
import { createSocket } from 'node:dgram'
import { readlinkSync } from 'node:fs'
import { allPids, descriptorsOf } from '../base/kernel/processes.ts'
import { isIPv6, parseAddress } from '../policy/network/address.ts'
import { ok, type Result, textOf, weak } from './finding.ts'

/** A reserved name: a server answers that it does not exist, without asking another server. */
const NAME = 'pen.invalid'
const TIME_LIMIT_MS = 2000
const MOST_SERVERS = 3
const TCP_LISTEN = '0A'

export async function checkHostDns(): Promise<readonly Result[]> {
  const servers = nameServers(textOf('/etc/resolv.conf'))
  const answers = servers.map(async server => {
    const reply = await askServer(server, NAME, TIME_LIMIT_MS)
    return [server, reply !== undefined] as const
  })
  const owners = ownersOf(53)
  const port = ok(
    owners.length === 0 ? 'no program listens on port 53' : `port 53 is used by ${owners.join(', ')}`,
    'pen serves DNS inside sandboxes only, and uses no port of this machine',
  )
  return [judgeServers(await Promise.all(answers)), { id: 'port-53', ...port }]
}

/** Valid addresses only. Addresses with a scope (`fe80::1%eth0`) are skipped. */
export function nameServers(resolvConf: string): string[] {
  const found = [...resolvConf.matchAll(/^\s*nameserver\s+(\S+)/gm)]
    .map(([, server = '']) => server)
    .filter(server => parseAddress(server).ok)
  return (found.length === 0 ? ['127.0.0.1'] : found).slice(0, MOST_SERVERS)
}

export function judgeServers(answers: readonly (readonly [server: string, answered: boolean])[]): Result {
  const serversThat = (wanted: boolean): string =>
    answers
      .filter(([, answered]) => answered === wanted)
      .map(([server]) => server)
      .join(', ')
  const [answering, silent] = [serversThat(true), serversThat(false)]
  if (silent === '') return ok(`name servers answer: ${answering}`)
  const fix = 'check /etc/resolv.conf and the network; without a network, pen run --offline'
  return answering === ''
    ? weak(`no name server answers (${silent})`, 'hosts that are allowed by name cannot be reached', fix)
    : weak(`name servers do not answer: ${silent}`, `every lookup waits for them; ${answering} answers`, fix)
}

/** Any answer counts. The address is set if the answer has one. */
export interface DnsReply {
  readonly address: string | undefined
}

/** Sends one DNS query over UDP: the system's resolver would answer from files and caches. Undefined without an answer. */
export async function askServer(
  server: string,
  name: string,
  timeoutMs: number,
): Promise<DnsReply | undefined> {
  const asked = question(name, Math.floor(Math.random() * 0x10000))
  return await new Promise(resolve => {
    const socket = createSocket(isIPv6(server as never) ? 'udp6' : 'udp4')
    const done = (reply?: DnsReply): void => {
      clearTimeout(timer)
      socket.close()
      resolve(reply)
    }
    const timer = setTimeout(done, timeoutMs)
    socket.on('message', bytes => {
      const reply = readReply(bytes, asked)
      if (reply !== undefined) done(reply)
    })
    socket.once('error', () => done())
    // A connected socket reports a missing server at once. Without a network it does not connect.
    socket.connect(53, server, (error?: unknown) => (error ? done() : socket.send(asked)))
  })
}

export function question(name: string, id: number): Buffer {
  const labels = name.split('.').map(label => Buffer.from([label.length, ...Buffer.from(label)]))
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(0x0100, 2)
  head.writeUInt16BE(1, 4)
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, 1, 0, 1])])
}

/** Undefined if this is no answer to that query. Reads only the first record, right after the question. */
export function readReply(reply: Buffer, asked: Buffer): DnsReply | undefined {
  if (reply.length < 12 || reply.readUInt16BE(0) !== asked.readUInt16BE(0)) return undefined
  if ((reply.readUInt16BE(2) & 0x8000) === 0) return undefined
  const at = asked.length
  const has = reply.readUInt16BE(6) > 0 && reply.length >= at + 16 && reply.readUInt16BE(at + 2) === 1
  return { address: has ? [...reply.subarray(at + 12, at + 16)].join('.') : undefined }
}

/** The names of programs that listen on a host port; `another user's program` for those that this user cannot inspect. */
function ownersOf(port: number): string[] {
  const inodes = new Set(
    ['tcp', 'tcp6', 'udp', 'udp6'].flatMap(table =>
      socketsAt(port, textOf(`/proc/net/${table}`), table.startsWith('tcp') ? 'tcp' : 'udp'),
    ),
  )
  if (inodes.size === 0) return []
  const names = new Set<string>()
  for (const pid of allPids())
    for (const inode of socketsOf(pid))
      if (inodes.delete(inode)) names.add(textOf(`/proc/${pid}/comm`).trim() || `process ${pid}`)
  if (inodes.size > 0) names.add("another user's program")
  return [...names]
}

/** The inodes of sockets on the port, from `/proc/net/{tcp,tcp6,udp,udp6}`. */
export function socketsAt(port: number, text: string, kind: 'tcp' | 'udp'): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return text
    .split('\n')
    .slice(1)
    .map(line => line.trim().split(/\s+/))
    .filter(fields => fields[1]?.endsWith(wanted) && (kind === 'udp' || fields[3] === TCP_LISTEN))
    .flatMap(fields => fields[9] ?? [])
}

function socketsOf(pid: number): string[] {
  return descriptorsOf(pid).flatMap(path => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(path))?.[1] ?? []
    } catch {
      return []
    }
  })
}
