/** Opens a real door and checks it: namespace, packet filter, DNS, one refused connection and its audit record. */
import type { AuditEventInput } from '../audit/event.ts'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import { connectGateway } from '../gateway/egress.ts'
import { type Door, openDoor } from '../gateway/netns/door.ts'
import { compileNetwork } from '../policy/network/network.ts'
import { denyAll, type NetworkPolicy } from '../policy/policy.ts'
import { fails, hintOf, messageOf, ok, type Result } from './finding.ts'
import { KNOCK_MODE, KNOCK_NAME, KNOCK_PORT, type KnockResult } from './knock.ts'

/** Allows nothing, so the gateway makes no lookup and no connection. */
const CLOSED: NetworkPolicy = {
  ...denyAll('/' as never).network,
  mode: 'gateway',
  offline: false,
  index: compileNetwork({ mode: 'gateway', offline: false, allow: [], deny: [] }),
}

export async function checkDoor(): Promise<Result> {
  let door: Door
  try {
    door = await openDoor({ ports: [] })
  } catch (error) {
    return fails('could not create a network namespace with a door', messageOf(error), hintOf(error))
  }
  if (!door.recordsRefusals) {
    door.close()
    return UNRECORDED
  }
  const records: AuditEventInput[] = []
  const egress = connectGateway(door, CLOSED, { record: event => void records.push(event) })
  try {
    await egress.serve()
    return judge(await knockAt(door), records, door.ipv6)
  } catch (error) {
    return fails('the door does not accept connections', messageOf(error), 'report this bug')
  } finally {
    await egress.close()
  }
}

const UNRECORDED = fails(
  'the kernel rejected the packet filter rules',
  'pen cannot log refused ports: pen run stops at the gap refusals-unrecorded',
  'sudo modprobe nf_tables, or pen run --accept-gap refusals-unrecorded',
)

async function knockAt(door: Door): Promise<KnockResult> {
  const { stdout } = await capture(door.enter([...ownProgram(), KNOCK_MODE]), {
    env: {},
    timeoutMs: 8000,
    maxOutput: 64 * 1024,
    cwd: '/',
  })
  // Trusted: pen wrote it, in a namespace in which nothing else runs.
  return JSON.parse(stdout === '' ? '{"response":""}' : stdout) as KnockResult
}

export function judge(
  { address, response }: KnockResult,
  records: readonly AuditEventInput[],
  ipv6: boolean,
): Result {
  const refused = records.some(
    record => record.kind === 'connection-denied' && record.name === KNOCK_NAME && record.port === KNOCK_PORT,
  )
  const missing = [
    ...(address === undefined ? ['its name server did not answer'] : []),
    ...(/^HTTP\/1\.1 403 /.test(response) ? [] : ['the refused connection got no 403 response']),
    ...(refused ? [] : ['the refusal was not recorded']),
  ]
  if (missing.length > 0) return fails('the door does not work', missing.join('; '), 'report this bug')
  const families = ipv6 ? 'IPv4 and IPv6' : 'IPv4 only'
  return ok(`the door works with ${families}: packet filter, DNS, a refusal and its record`)
}
