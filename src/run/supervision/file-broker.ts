/** Opens the file broker of one sandbox: its socket, its policy and its audit. */
import { closeSync, constants, openSync, realpathSync } from 'node:fs'
import type { AuditSink } from '../../audit/event.ts'
import { basename } from '../../base/posix-path.ts'
import { Broker } from '../../file-broker/broker.ts'
import { type Listening, listen } from '../../file-broker/listen.ts'
import type { GrantedPolicy } from '../../policy/files/decide-grant.ts'
import type { HostPath } from '../../policy/files/path.ts'
import type { Policy } from '../../policy/policy.ts'
import { BROKER_SOCKET } from '../../protocol/guest-paths.ts'
import { LiveGrants } from '../live-grants.ts'
import type { Prepared } from '../prepare.ts'

export interface FileBrokerOptions {
  readonly prepared: Prepared
  /** The host's directory that the sandbox sees at `/run/pen`. */
  readonly inside: string
  readonly audit: AuditSink
  readonly tell: (line: string) => void
  readonly fail: (error: unknown) => void
}

export async function openFileBroker(options: FileBrokerOptions): Promise<Listening> {
  const { prepared, audit, tell, fail } = options
  const { project, policy } = prepared.loaded
  const grants = new LiveGrants(project.stateDir, audit, tell)
  const broker = new Broker({
    policy: { ...withoutSources(policy), sandbox: project.name },
    grants: () => grants.now(),
    audit,
    maxWritten: policy.limits.disk,
    fail,
  })
  // Through a descriptor: a socket path holds about a hundred bytes, and a home may be longer.
  const dir = openSync(options.inside, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return listen(`/proc/self/fd/${dir}/${basename(BROKER_SOCKET)}`, broker, fail)
  } finally {
    closeSync(dir)
  }
}

/** A file that a secret is read from is denied, whatever is granted around it. */
function withoutSources({ files, workspace, network }: Policy): GrantedPolicy {
  const sources = network.secrets.flatMap(({ rule: { from }, source }) =>
    from.kind === 'file'
      ? [from.path, realPathOf(from.path)].map(path => ({
          rule: { kind: 'path' as const, path: path as HostPath },
          source,
        }))
      : [],
  )
  return { workspace, files: { ...files, deny: [...files.deny, ...sources] } }
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
