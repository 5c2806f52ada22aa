/** That a connection waits for an answer, told beside a command in a sandbox that stays: its supervisor has no terminal to tell it on. */
import { auditDirectory } from '../../audit/directory.ts'
import type { AuditEventInput } from '../../audit/event.ts'
import { followAudit } from '../../audit/follow.ts'
import type { Project } from '../../config/project.ts'
import { HeldNotice } from '../../run/held-notice.ts'
import { screen } from '../../terminal/screen.ts'

/** Of this run, from now on. Returns what ends it, and tells what could not be told meanwhile. */
export function tellHeld(project: Project, run: string, tell: (line: string) => void): () => string[] {
  const ending = new AbortController()
  const began = new Date().toISOString()
  const notice = new HeldNotice(
    { record: () => undefined },
    // The supervisor has told the desktop.
    { tell, env: {}, sandbox: project.id, notify: () => undefined, screen },
  )
  void follow()
  return () => {
    ending.abort()
    return notice.summary()
  }

  async function follow(): Promise<void> {
    const records = followAudit(auditDirectory(project.stateDir), {
      run,
      signal: ending.signal,
      wanted: ({ kind, time }) => kind === 'connection-held' && time >= began,
    })
    // Written by the supervisor, in one spelling: no name in it is the sandbox's own.
    for await (const batch of records) {
      if (ending.signal.aborted) return
      for (const record of batch) notice.record(record as unknown as AuditEventInput)
    }
  }
}
