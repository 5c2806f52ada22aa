/** A directory of one examination's own. It is gone at the end, and also when pen is killed in the middle. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { startProgram } from '../base/start-program.ts'
import type { UndoStack } from '../base/undo.ts'
import { cgroupName, ownerOf } from '../limits/cgroup-name.ts'

/** Where the state is, or would be: so that its file system is the one that is tried. Undefined where nothing can be written. */
export function makeScratch(home: string, state: string, undo: UndoStack): string | undefined {
  const above = existsSync(state) ? state : home
  sweep(above)
  const scratch = `${above}/.${cgroupName('doctor')}`
  // First: pen may be killed as soon as there is something to take away.
  const dismiss = watchOver(scratch)
  try {
    mkdirSync(scratch, { mode: 0o700 })
  } catch {
    dismiss()
    return undefined
  }
  undo.push('the scratch directory', () => {
    rmSync(scratch, { recursive: true, force: true })
    dismiss()
  })
  return scratch
}

/** What was started last may still write for a moment after pen is gone, so that it is removed twice. */
const REMOVE_AT_END = `trap '' INT HUP TERM; "$2" >/dev/null; rm -rf -- "$1"; sleep 1; rm -rf -- "$1"`

/** A shell that waits for the end of its input, which comes with the end of pen, however it ends. */
function watchOver(scratch: string): () => void {
  const [shell, cat] = [findTool('sh'), findTool('cat')]
  if (shell === undefined || cat === undefined) return () => undefined
  const child = startProgram([shell, '-c', REMOVE_AT_END, 'pen-doctor', scratch, cat], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
  })
  child.unref()
  return () => {
    child.kill('SIGKILL')
  }
}

/** What is left when that shell was killed too. */
function sweep(above: string): void {
  try {
    for (const name of readdirSync(above)) {
      const owner = /^\.pen-.*-doctor$/.test(name) ? ownerOf(name.slice(1)) : undefined
      if (owner !== undefined && !isAlive(owner)) rmSync(`${above}/${name}`, { recursive: true, force: true })
    }
  } catch {
    // Not ours to look at: nothing of ours is there.
  }
}
