import { listCheckpoints, removeCheckpoint } from '../../../review/checkpoint/checkpoint.ts'
import { lockAccept } from '../../../review/open-review.ts'
import { defineVerb } from '../../frame/verb.ts'
import { checkpointData, checkpointSize, WHY } from '../../render/checkpoints.ts'
import { showAge, table } from '../../render/table.ts'

export const verb = defineVerb({
  name: 'checkpoints',
  summary: 'List the checkpoints of a review layer',
  details:
    'The oldest is first. pen keeps the latest five of those that it made itself. Sizes are those on the disk; a copy by reflink takes less.',
  flags: { remove: { kind: 'string', value: 'CHECKPOINT', about: 'remove this one' } },
  examples: {
    'pen checkpoints': 'list name, age, size and who made it',
    'pen checkpoints --remove 1': 'free its disk space',
  },
  async run({ flags, terminal, project: { stateDir }, answer }) {
    if (flags.remove !== undefined) {
      const lock = await lockAccept(stateDir)
      try {
        removeCheckpoint(stateDir, flags.remove)
      } finally {
        lock.release()
      }
      answer({ version: 1, removed: flags.remove }, `removed checkpoint ${flags.remove}`)
      return
    }
    const known = listCheckpoints(stateDir)
    if (known.length === 0 && !flags.json) {
      terminal.note('no checkpoints; fix: pen checkpoint')
      return
    }
    const rows = known.map(one => [
      one.name,
      showAge(new Date(one.made).toISOString(), Date.now()),
      checkpointSize(one),
      WHY[one.why],
    ])
    answer(
      { version: 1, checkpoints: known.map(checkpointData) },
      table(['NAME', 'AGE', 'SIZE', 'MADE'], rows),
    )
  },
})
