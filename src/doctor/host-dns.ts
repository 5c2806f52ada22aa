/** Checks the host's name servers, which look up allowed names. */
import { readFileSync } from 'node:fs'
import { parseAddress } from '../policy/network/address.ts'
import { askServer } from './dns-question.ts'
import { type Finding, ok, weak } from './finding.ts'
import { ownersOf } from './port-owners.ts'

/** A reserved name: a server answers that it does not exist, without asking another server. */
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

/** Valid addresses only. Addresses with a scope (`fe80::1%eth0`) are skipped. */
export function nameServers(resolvConf: string): string[] {
  const found = [...resolvConf.matchAll(/^\s*nameserver\s+(\S+)/gm)]
    .map(([, server = '']) => server)
    .filter(server => parseAddress(server).ok)
  return (found.length === 0 ? ['127.0.0.1'] : found).slice(0, MOST_SERVERS)
}

export function judgeServers(answers: readonly (readonly [server: string, answered: boolean])[]): Finding {
  const serversThat = (wanted: boolean): string =>
    answers
      .filter(([, answered]) => answered === wanted)
      .map(([server]) => server)
      .join(', ')
  if (answers.every(([, answered]) => answered)) return ok('dns', `name servers answer: ${serversThat(true)}`)
  const fix = 'check /etc/resolv.conf and the network; without a network, pen run --offline'
  if (answers.some(([, answered]) => answered))
    return weak(
      'dns',
      `name servers do not answer: ${serversThat(false)}`,
      `every lookup waits for them; ${serversThat(true)} answers`,
      fix,
    )
  return weak(
    'dns',
    `no name server answers (${serversThat(false)})`,
    'hosts that are allowed by name cannot be reached',
    fix,
  )
}

const portFinding = (owners: readonly string[]): Finding =>
  ok(
    'port-53',
    owners.length === 0 ? 'no program listens on port 53' : `port 53 is used by ${owners.join(', ')}`,
    'pen serves DNS inside sandboxes only, and uses no port of this machine',
  )

function readResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8')
  } catch {
    return ''
  }
}
