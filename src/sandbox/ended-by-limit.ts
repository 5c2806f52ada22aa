/** Which limit ended a sandbox, for a command that died with it: from the audit, which the keeper writes before it acts. */
import { auditDirectory } from '../audit/directory.ts'
import { readAudit } from '../audit/read.ts'
import { presenceOf, readRecord } from './store.ts'

/** A keeper that ends records why before it is gone. */
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
  await keeperGone(ended)
  const { stateDir, run, since } = ended
  const hits = readAudit(auditDirectory(stateDir), {
    run,
    wanted: ({ kind, reason, time }) => kind === 'limit-hit' && reason === 'killed' && time >= since,
  })
  return [...hits].flatMap(({ why, cure }) => {
    if (typeof why !== 'string') return []
    return [`limit: ${why}${typeof cure === 'string' ? `; to raise it: ${cure}` : ''}`]
  })
}

async function keeperGone({ stateDir, run }: EndedRun): Promise<void> {
  for (const late = performance.now() + LAST_WORDS_MS; performance.now() < late; await Bun.sleep(LOOK_MS)) {
    const presence = await presenceOf(stateDir)
    if (presence.is === 'absent') return
    const now = readRecord(stateDir)?.run
    if (now !== undefined && now !== run) return
  }
}
