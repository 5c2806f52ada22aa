/** The sandbox behind one SSH connection. */
import { PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { findHome, locate } from '../config/locate.ts'
import { findProject, named, type Project } from '../config/project.ts'
import { requestValue, sendRequest } from '../control/client.ts'
import { takeValue } from '../control/messages.ts'
import { readStoredOrder } from '../control/stored-order.ts'
import { startSandbox } from '../lifecycle/start.ts'
import type { HostPath } from '../policy/files/path.ts'
import { SSH_MODE } from '../ssh/ssh-host.ts'

export interface Attended {
  /** No kernel confines it: there is no server for files. */
  readonly soft: boolean
  readonly ended: Promise<void>
}

/** From the words that `pen ssh-config` wrote: the id of the project, and the sandbox's name. */
export function findSandbox([id = '', name, ...more]: readonly string[]): Project {
  const state = locate(`${findHome()}/.pen`).real
  const shared = { id, stateDir: `${state}/sandboxes/${id}` as HostPath }
  const isId = /^[a-z0-9][a-z0-9-]{1,64}$/.test(id) && more.length === 0
  const stateDir = isId ? (name === undefined ? shared : named(shared, name)).stateDir : ''
  const workspace = isId
    ? readRegularFile(`${stateDir}/workspace`, { maxBytes: 8192, owner: 'self-or-root' })
        ?.toString()
        .trimEnd()
    : undefined
  const project = workspace === undefined ? undefined : findProject(workspace, name)
  if (project !== undefined && project.stateDir === stateDir) return project
  throw new PenError('STATE', {
    what: isId ? `there is no sandbox ${id} any more` : `${SSH_MODE} is not a verb: ssh runs it`,
    hint: 'run pen ssh-config in the project, and use the host that it prints',
  })
}

/**
 * Starts a sandbox that a crash or a reboot ended. After `pen stop` it starts nothing: an editor that reconnects by itself
 * must not bring back a sandbox without its flags.
 */
export async function attendSandbox(project: Project, say: (line: string) => void): Promise<Attended> {
  const { id, stateDir } = project
  for (let tries = 0; tries < 3; tries++) {
    const attended = await sendRequest(stateDir, { want: 'attend' })
    if (attended !== undefined) {
      takeValue(attended.answer)
      const ended = new Promise<void>(resolve =>
        attended.socket.attach({ data: () => undefined, closed: resolve }),
      )
      const status = (await requestValue(stateDir, 'status'))?.value as
        | { readonly soft?: boolean }
        | undefined
      return { soft: status?.soft === true, ended }
    }
    if (readStoredOrder(stateDir) === undefined) break
    const asked = { id, flags: {}, offline: false, allowUserExpansion: false }
    await startSandbox(project, { asked, say, isAnnounced: true })
  }
  throw new PenError('STATE', { what: 'the sandbox is not running', hint: 'pen start --detach, or pen ssh' })
}
