/** A repository that was made inside, in a project that had none, becomes one of the host's own making. */
import type { Audit } from '../../audit/append.ts'
import { lookAt, Unseen } from '../../base/beneath/look-at.ts'
import type { RefEvent } from '../../repository/sync/repository-sync.ts'
import type { Prepared } from '../prepare.ts'
import { adoptionOptions } from '../repository-options.ts'

const ADOPTED_LATER =
  'git: another sandbox of this project runs, and could swap the repository that was made inside: your git makes it again at the end of that run, or at the next start'

export interface AdoptResult {
  /** Lines for the user. */
  readonly lines: readonly string[]
  /** False when a repository of the sandbox's stays in the project. */
  readonly isTaken: boolean
}

export async function adoptMade(prepared: Prepared, audit: Audit): Promise<AdoptResult> {
  const { facts, plan } = prepared
  const isNew = facts.repository.kind === 'none' || facts.repository.kind === 'ancestor'
  const mayHaveOne = plan.layer === undefined && isNew && !plan.soft && mayExist(`${plan.workspace}/.git`)
  if (!mayHaveOne) return { lines: [], isTaken: true }
  const { adoptRepository } = await import('../../repository/adopt/adopt.ts')
  const { takeRepository } = await import('../../repository/adopt/take-repository.ts')
  const { whileAlone } = await import('../../protect/while-alone.ts')
  const { stateDir } = prepared.loaded.project.shared
  const result = await whileAlone(stateDir, [audit.run], async () => {
    const stays = takeRepository(plan.workspace, stateDir, audit.run)
    if (stays !== undefined) return { lines: [stays], isTaken: false }
    const record = (event: RefEvent): void => void audit.record(event)
    const lines = await adoptRepository({ ...adoptionOptions(prepared), record }, audit.run)
    return { lines, isTaken: true }
  })
  return result ?? { lines: [ADOPTED_LATER], isTaken: false }
}

/** The sandbox may have locked the project. */
function mayExist(path: string): boolean {
  try {
    return lookAt(path) !== undefined
  } catch (error) {
    if (error instanceof Unseen) return true
    throw error
  }
}
