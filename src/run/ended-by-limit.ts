/** Which limit ended a sandbox, for a command that died with it: from the audit, which the supervisor writes before it acts. */
import { auditDirectory } from '../audit/directory.ts'
import { readAudit } from '../audit/read.ts'
import { presenceOf, readRecord } from '../control/state.ts'

/** A supervisor that ends records why before it is gone. */
const LAST_WORDS_MS = 5000
const LOOK_MS = 25

export interface EndedRun {
  readonly stateDir: string
  readonly run: string
  /** When the command began. */
  readonly since: string
}

/** In lines for a person, each with its fix; empty where no limit did it. */
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
