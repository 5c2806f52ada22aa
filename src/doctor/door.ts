/** The way out of a sandbox, by opening a real one: namespace, rules, DNS, one refused connection and its record. */
import type { AuditEventInput } from '../audit/event.ts'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import { connectGateway } from '../gateway/egress.ts'
import { type Door, openDoor } from '../gateway/netns/door.ts'
import { compileNetwork } from '../policy/network/network.ts'
import { denyAll, type NetworkPolicy } from '../policy/policy.ts'
import { type Finding, fails, ok } from './finding.ts'
import { KNOCK_MODE, KNOCK_NAME, KNOCK_PORT, type Knocked } from './knock.ts'
import { hintOf, messageOf } from './message.ts'

const ID = 'network'

/** A gateway that allows nothing: it looks nothing up and dials nobody. */
const CLOSED: NetworkPolicy = {
  ...denyAll('/' as never).network,
  mode: 'gateway',
  offline: false,
  index: compileNetwork({ mode: 'gateway', offline: false, allow: [], deny: [] }),
}

export async function checkDoor(): Promise<readonly Finding[]> {
  let door: Door
  try {
    door = await openDoor({ ports: [] })
  } catch (error) {
    return [fails(ID, 'no network namespace with a door could be made', messageOf(error), hintOf(error))]
  }
  if (!door.recordsRefusals) {
    door.close()
    return [UNRECORDED]
  }
  const records: AuditEventInput[] = []
  const egress = connectGateway(door, CLOSED, { record: event => void records.push(event) })
  try {
    await egress.serve()
    const knocked = await knockAt(door)
    return [judge(knocked, records, door.ipv6)]
  } catch (error) {
    return [fails(ID, 'the door in a network namespace does not serve', messageOf(error), 'report this')]
  } finally {
    await egress.close()
  }
}

const UNRECORDED: Finding = fails(
  ID,
  'the kernel did not take the rules of its packet filter',
  'ports that no rule names would be refused without a record: a gap, refusals-unrecorded, at which pen run stops',
  'use a kernel with nf_tables (sudo modprobe nf_tables), or pen run --accept-gap refusals-unrecorded',
)

async function knockAt(door: Door): Promise<Knocked> {
  const { stdout } = await capture(door.enter([...ownProgram(), KNOCK_MODE]), {
    env: {},
    timeoutMs: 8000,
    maxOutput: 64 * 1024,
    cwd: '/',
  })
  // Written by pen itself, in a namespace in which nothing else runs.
  return JSON.parse(stdout === '' ? '{"said":""}' : stdout) as Knocked
}

export function judge(
  { address, said }: Knocked,
  records: readonly AuditEventInput[],
  ipv6: boolean,
): Finding {
  const refused = records.some(
    record => record.kind === 'connection-denied' && record.name === KNOCK_NAME && record.port === KNOCK_PORT,
  )
  const missing = [
    ...(address === undefined ? ['the name server in it did not answer'] : []),
    ...(/^HTTP\/1\.1 403 /.test(said) ? [] : ['the refused connection was not told so']),
    ...(refused ? [] : ['the refusal was not recorded']),
  ]
  if (missing.length > 0)
    return fails(ID, 'the door in a network namespace does not work', missing.join('; '), 'report this')
  const families = ipv6 ? 'IPv4 and IPv6' : 'IPv4 alone'
  return ok(ID, `a door was opened for ${families}: rules, an answer by name, one refusal and its record`)
}
