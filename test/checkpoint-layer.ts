/** As a program: makes checkpoints and rolls back between them, so that a test can kill it. Prints a line when it begins. */
import {
  findCheckpoint,
  keepCheckpoint,
  removeCheckpoint,
  stageCheckpoint,
} from '../src/review/checkpoint/checkpoint.ts'
import { finishRollback, rollBack } from '../src/review/checkpoint/rollback.ts'

const [stateDir = ''] = process.argv.slice(2)
finishRollback(stateDir)
process.stdout.write('begins\n')
for (;;) {
  for (const name of ['a', 'b']) rollBack(stateDir, name)
  try {
    findCheckpoint(stateDir, 'again')
    removeCheckpoint(stateDir, 'again')
  } catch {
    keepCheckpoint(stateDir, stageCheckpoint(stateDir, 'asked', 'again'))
  }
}
