/** Finds the limit that ended a sandbox, for a command that died with it. The supervisor writes the audit before it acts. */
import { auditDirectory } from '../audit/directory.ts'
import { readAudit } from '../audit/read.ts'
import { presenceOf, readRecord } from '../control/state.ts'

/** How long to wait for the supervisor's last record. */
const LAST_WORDS_MS = 5000
const LOOK_MS = 25

export interface EndedRun {
  readonly stateDir: string
  readonly run: string
  /** When the command began. */
  readonly since: string
}

/** One line per limit, each with its fix. Empty when no limit ended the sandbox. */
export async function endedByLimit(ended: EndedRun): Promise<string[]> {
  await supervisorGone(ended)
  const { stateDir, run, since } = ended
  const hits = readAudit(auditDirectory(stateDir), {
    run,
    wanted: ({ kind, reason, time }) => kind === 'limit-hit' && reason === 'killed' && time >= since,
  })
  return [...hits].flatMap(({ why, fix }) => {
    if (typeof why !== 'string') return []
    return [`limit: ${why}${typeof fix === 'string' ? `; to raise it: ${fix}` : ''}`]
  })
}

async function supervisorGone({ stateDir, run }: EndedRun): Promise<void> {
  for (const late = performance.now() + LAST_WORDS_MS; performance.now() < late; await Bun.sleep(LOOK_MS)) {
    const presence = await presenceOf(stateDir)
    if (presence.is === 'absent') return
    const now = readRecord(stateDir)?.run
    if (now !== undefined && now !== run) return
  }
}
