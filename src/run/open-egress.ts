/** Connects the gateway to the door of one sandbox, with the notice for held connections and the user's one-time grants. */
import type { AuditSink } from '../audit/event.ts'
import { takesNow } from '../base/kernel/descriptor.ts'
import { claimGrant } from '../config/grants/grant-files.ts'
import { connectGateway, type Egress } from '../gateway/egress.ts'
import type { Door } from '../gateway/netns/door.ts'
import { screen } from '../terminal/screen.ts'
import { HeldNotice } from './held-notice.ts'
import type { StartedSandbox } from './start-sandbox.ts'

export interface OpenEgress {
  readonly egress: Egress | undefined
  readonly notice: HeldNotice | undefined
}

export function openEgress(
  { prepared, tell, env }: StartedSandbox,
  door: Door,
  audit: AuditSink,
): OpenEgress {
  const { project, policy } = prepared.loaded
  // Never block on a full stderr: limits would not be enforced while we wait.
  const tellNow = (line: string): void => (takesNow(2) ? tell(line) : undefined)
  const notice = new HeldNotice(audit, { tell: tellNow, env, sandbox: project.id, screen })
  const useUp = (grant: string): boolean => claimGrant(project.stateDir, grant)
  return { egress: connectGateway(door, policy.network, notice, useUp), notice }
}
