/** What one sync found and did. The end of a run empties the sandbox's directory only when everything is on the host. */
import type { AppliedPlan } from './apply-sync.ts'
import type { SyncPlan } from './plan-sync.ts'

export interface SyncReport
  extends Pick<SyncPlan, 'aside' | 'refused' | 'deleted' | 'left'>,
    Pick<AppliedPlan, 'isLate'> {
  /** Objects were refused, perhaps for a reason that goes away. */
  readonly hasFailed: boolean
  /** Worktrees that were made in the sandbox. The host's git does not know them. */
  readonly worktrees: readonly string[]
  /** An operation is unfinished in the sandbox's repository. */
  readonly isOpen: boolean
  /** The sandbox has commits for a branch, and an operation is unfinished on the host, or its index is locked. */
  readonly isHostBusy: boolean
  /** Its index has entries that are in no commit. */
  readonly isStaged: boolean
  /** Everything is on the host. */
  readonly isComplete: boolean
}

type Facts = Omit<SyncReport, 'deleted' | 'left' | 'isComplete'>

export function reportOf({ waits, left, deleted }: SyncPlan, facts: Facts): SyncReport {
  const { isOpen, isStaged, isLate, aside, refused, worktrees } = facts
  const isComplete =
    !isOpen &&
    !isStaged &&
    !waits &&
    !isLate &&
    left === 0 &&
    !aside.some(({ reason }) => reason === 'consent') &&
    refused.length === 0 &&
    worktrees.length === 0
  return { ...facts, deleted, left, isComplete }
}
