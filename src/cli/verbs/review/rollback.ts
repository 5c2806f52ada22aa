import { type Lock, tryLock } from '../../../config/lock.ts'
import { whileStopped } from '../../../lifecycle/restart.ts'
import { findCheckpoint } from '../../../review/checkpoint/checkpoint.ts'
import { rollBack } from '../../../review/checkpoint/rollback.ts'
import { layerPaths, lockLayer } from '../../../review/layer.ts'
import { lockAccept } from '../../../review/open-review.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'rollback',
  summary: 'Go back to a checkpoint of a review layer',
  details:
    'Files and commits of the sandbox are then as they were at the checkpoint. What was there before becomes a checkpoint too. A sandbox of pen start is stopped, and starts again with its flags; a pen run must end first. The project, and what you accepted, stay as they are.',
  positionals: { name: { arity: 'one', about: 'a name from pen checkpoints' } },
  examples: {
    'pen rollback before-refactoring': 'go back',
    'pen rollback rollback-2': 'undo a rollback',
  },
  async run({ positionals: { name }, terminal, project, answer }) {
    const { stateDir } = project
    const say = (line: string): void => terminal.note(`pen: ${line}`)
    const lock = await lockAccept(stateDir)
    try {
      // Before the sandbox is stopped.
      findCheckpoint(stateDir, name)
      const work = (layer: Lock): string => {
        try {
          return rollBack(stateDir, name)
        } finally {
          layer.release()
        }
      }
      const unmounted = tryLock(layerPaths(stateDir).lock)
      const before = await withProgress('rolling back', terminal, async () =>
        unmounted === undefined
          ? await whileStopped(project, say, async () => work(await lockLayer(stateDir)))
          : work(unmounted),
      )
      answer(
        { version: 1, name, before },
        `the layer is as it was at ${name}; what was there before is checkpoint ${before}`,
      )
      return undefined
    } finally {
      lock.release()
    }
  },
})
