/** Copies a review layer while no process writes it: under its lock, or while the sandbox that has it mounted is paused. */
import { removeTree } from '../base/beneath/remove-tree.ts'
import { PenError } from '../base/error.ts'
import { tryLock } from '../config/lock.ts'
import {
  type Checkpoint,
  keepCheckpoint,
  type Staged,
  stageCheckpoint,
  type Why,
} from '../review/checkpoint/checkpoint.ts'
import { finishRollback } from '../review/checkpoint/rollback.ts'
import { layerPaths } from '../review/layer.ts'
import { pauseForCopy } from '../run/pause.ts'

/** A sandbox that starts or ends has the lock, and cannot be paused. */
const PATIENCE_MS = 10_000
const POLL_MS = 20

/** The caller holds the lock of accepts. */
export async function takeCheckpoint(stateDir: string, why: Why, name?: string): Promise<Checkpoint> {
  const copy = (): Staged => stageCheckpoint(stateDir, why, name)
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await Bun.sleep(POLL_MS)) {
    const lock = tryLock(layerPaths(stateDir).lock)
    if (lock !== undefined)
      try {
        finishRollback(stateDir)
        return keepCheckpoint(stateDir, copy())
      } finally {
        lock.release()
      }
    const pause = await pauseForCopy(stateDir)
    if (pause === undefined) continue
    try {
      const staged = copy()
      if (await pause.holds()) return keepCheckpoint(stateDir, staged)
      removeTree(staged.stage)
      throw new PenError('STATE', {
        what: 'the sandbox ended during the copy, or the copy took more than a minute; nothing was kept',
        hint: 'try again, or first: pen stop',
      })
    } finally {
      pause.end()
    }
  }
  throw new PenError('STATE', {
    what: 'a sandbox with this review layer is starting or ending, and cannot be paused',
    at: layerPaths(stateDir).lock,
    hint: 'try again',
  })
}
