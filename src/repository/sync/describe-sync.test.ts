import { expect, test } from 'bun:test'
import { describeReport } from './describe-sync.ts'

const NOTHING = {
  isLate: false,
  hasFailed: false,
  aside: [],
  refused: [],
  deleted: [],
  left: 0,
  worktrees: [],
  isOpen: false,
  isHostBusy: false,
  isStaged: false,
  isComplete: true,
}

test('commits that wait for a merge on the host are reported, and no staged files', () => {
  const report = { ...NOTHING, isHostBusy: true, isStaged: true, isComplete: false }
  const lines = describeReport('', report, 'app-0123')
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('unfinished on the host')
})
