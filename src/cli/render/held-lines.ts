/** Shows waiting connections during `pen exec`: the supervisor has no terminal, so the client reads the audit. */
import { auditDirectory } from '../../audit/directory.ts'
import type { AuditEventInput } from '../../audit/event.ts'
import { followAudit } from '../../audit/follow.ts'
import type { Project } from '../../config/project.ts'
import { HeldNotice } from '../../run/held-notice.ts'
import { screen } from '../../terminal/screen.ts'

/** Shows what waits in this run from now on. Returns a function that stops it and returns the summary. */
export function showHeld(project: Project, run: string, tell: (line: string) => void): () => string[] {
  const ending = new AbortController()
  const began = new Date().toISOString()
  const notice = new HeldNotice(
    { record: () => undefined },
    // The supervisor sends the desktop notification.
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
    // The supervisor writes names in canonical spelling, so they are safe to print.
    for await (const batch of records) {
      if (ending.signal.aborted) return
      for (const record of batch) notice.record(record as unknown as AuditEventInput)
    }
  }
}
