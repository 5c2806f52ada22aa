/**
 * Holds the lock of a review layer until a container has ended, also when pen was killed. Until the last process is
 * gone, no other sandbox may mount the layer.
 */
import { closeSync } from 'node:fs'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import { startProgram } from '../../base/start-program.ts'
import type { UndoStack } from '../../base/undo.ts'

/**
 * $1 is the container's first process. It ends after all others of its namespace, and may then wait as a zombie. The
 * shell waits for that at most 30 seconds after the end of pen.
 */
const SCRIPT = `trap '' HUP INT TERM
read _
n=0
while [ $n -lt 600 ] && read -r state </proc/$1/stat; do
  case \${state##*) } in Z* | X*) exit ;; esac
  n=$((n + 1))
  sleep 0.05
done`

export function holdLock(lock: number, init: number, undo: UndoStack): void {
  const shell = findTool('sh')
  if (shell === undefined) throw missingTool('sh', 'install a POSIX shell')
  const [life, ours] = pipe()
  startProgram([shell, '-c', SCRIPT, 'pen', String(init)], {
    stdio: [life, 'ignore', 'ignore', lock],
    // A signal of the terminal must not end it.
    detached: true,
    env: {},
    cwd: '/',
  })
  closeSync(life)
  undo.push('the holder of the lock', () => closeSync(ours))
}
