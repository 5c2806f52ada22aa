import { takeCheckpoint } from '../../../lifecycle/take-checkpoint.ts'
import { lockAccept } from '../../../review/open-review.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'
import { checkpointData, checkpointSize } from '../../render/checkpoints.ts'

export const verb = defineVerb({
  name: 'checkpoint',
  summary: 'Keep a copy of what a sandbox with --review did',
  details:
    'pen rollback goes back to it. The sandbox is paused for the copy, and goes on. The copy has the changed files and the git directory of the sandbox, not its home and volumes. pen accept without a path and pen discard remove checkpoints with the layer.',
  positionals: { name: { arity: 'optional', about: 'a-z, 0-9 and - (default: a number)' } },
  examples: {
    'pen checkpoint': 'as 1, 2 and so on',
    'pen checkpoint before-refactoring': 'with a name',
  },
  async run({ positionals, terminal, project: { stateDir }, answer }) {
    const lock = await lockAccept(stateDir)
    try {
      const made = await withProgress('copying the layer', terminal, () =>
        takeCheckpoint(stateDir, 'asked', positionals.name),
      )
      answer(
        { version: 1, ...checkpointData(made) },
        `checkpoint ${made.name} (${checkpointSize(made)}): pen rollback ${made.name}`,
      )
      return undefined
    } finally {
      lock.release()
    }
  },
})
