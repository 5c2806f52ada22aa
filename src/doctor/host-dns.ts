/** Names that a policy allows are looked up on the host: whether anybody answers there. */
import { readFileSync } from 'node:fs'
import { parseAddress } from '../policy/network/address.ts'
import { askServer } from './dns-question.ts'
import { type Finding, ok, weak } from './finding.ts'
import { ownersOf } from './port-owners.ts'

/** Reserved: a server says that there is no such name, and has to ask nobody for it. */
const NAME = 'pen.invalid'
const TIME_LIMIT_MS = 2000
const MOST_SERVERS = 3

export async function checkHostDns(): Promise<readonly Finding[]> {
  const servers = nameServers(readResolvConf())
  const answers = await Promise.all(
    servers.map(async server => ({ server, reply: await askServer(server, NAME, TIME_LIMIT_MS) })),
  )
  return [
    judgeServers(answers.map(({ server, reply }) => [server, reply.answered])),
    portFinding(ownersOf(53)),
  ]
}

/** Addresses alone: a scope (`fe80::1%eth0`) is left out, and so is what is no address. */
export function nameServers(resolvConf: string): string[] {
  const found = [...resolvConf.matchAll(/^\s*nameserver\s+(\S+)/gm)]
    .map(([, server = '']) => server)
    .filter(server => parseAddress(server).ok)
  return (found.length === 0 ? ['127.0.0.1'] : found).slice(0, MOST_SERVERS)
}

export function judgeServers(answers: readonly (readonly [server: string, answered: boolean])[]): Finding {
  const told = (wanted: boolean): string =>
    answers
      .filter(([, answered]) => answered === wanted)
      .map(([server]) => server)
      .join(', ')
  if (answers.every(([, answered]) => answered)) return ok('dns', `name servers that answer: ${told(true)}`)
  const fix = 'look at /etc/resolv.conf and at the network; without network, pen run --offline'
  if (answers.some(([, answered]) => answered))
    return weak(
      'dns',
      `name servers that do not answer: ${told(false)}`,
      `every look-up waits for them; ${told(true)} answers`,
      fix,
    )
  return weak(
    'dns',
    `no name server answers (${told(false)})`,
    'hosts that a policy allows by name cannot be reached',
    fix,
  )
}

const portFinding = (owners: readonly string[]): Finding =>
  ok(
    'port-53',
    owners.length === 0 ? 'nobody listens on port 53' : `port 53 is held by ${owners.join(', ')}`,
    'pen answers names inside sandboxes only, and takes no port of this machine',
  )

function readResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8')
  } catch {
    return ''
  }
}
