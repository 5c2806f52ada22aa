/** A library user or a model asks for access to a host. The person answers. */
import { PenError } from '../base/error.ts'
import type { AskRequest } from '../control/messages.ts'
import type { UserAnswer } from '../gateway/ask-user.ts'
import { parseQuestion } from '../policy/explain.ts'
import type { Serving } from './supervision/supervisor.ts'

export async function askForHost(
  { egress, prepared }: Pick<Serving, 'egress' | 'prepared'>,
  { target, waitMs }: AskRequest,
  isGone: () => boolean,
): Promise<UserAnswer> {
  const parsed = parseQuestion(target)
  if (!parsed.ok)
    throw new PenError('HOST_SYNTAX', {
      what: `"${target}": ${parsed.why}`,
      hint: parsed.fix ?? 'write it as registry.example.com:443',
    })
  if (egress !== undefined) return await egress.ask(parsed.value, { ms: waitMs, isGone })
  const { network } = prepared.plan
  const why = network.kind === 'none' ? network.why : 'there is no gateway'
  const fix = 'restart the sandbox with a network: pen restart'
  return {
    allowed: false,
    shown: false,
    reason: 'no-network',
    why: `this sandbox has no network: ${why}`,
    fix,
  }
}
