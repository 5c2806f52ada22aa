/** A temporary directory for the checks. It is removed at the end, also if pen is killed. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { startProgram } from '../base/start-program.ts'
import type { UndoStack } from '../base/undo.ts'
import { cgroupName, ownerOf } from '../limits/cgroup-name.ts'

/** On the file system of pen's state, so that the checks test that one. Undefined if it is not writable. */
export function makeScratch(home: string, state: string, undo: UndoStack): string | undefined {
  const above = existsSync(state) ? state : home
  sweep(above)
  const scratch = `${above}/.${cgroupName('doctor')}`
  // The watcher starts before the directory exists, because pen can be killed at any time.
  const stopWatcher = startWatcher(scratch)
  try {
    mkdirSync(scratch, { mode: 0o700 })
  } catch {
    stopWatcher()
    return undefined
  }
  undo.push('the scratch directory', () => {
    rmSync(scratch, { recursive: true, force: true })
    stopWatcher()
  })
  return scratch
}

/** Removes the directory twice, because the last process may still write for a moment after pen was killed. */
const REMOVE_AT_END = `trap '' INT HUP TERM; "$2" >/dev/null; rm -rf -- "$1"; sleep 1; rm -rf -- "$1"`

/** A shell that waits for end of input, which comes when pen ends for any reason. */
function startWatcher(scratch: string): () => void {
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

/** Removes directories of earlier checks whose watcher was killed too. */
function sweep(above: string): void {
  try {
    for (const name of readdirSync(above)) {
      const owner = /^\.pen-.*-doctor$/.test(name) ? ownerOf(name.slice(1)) : undefined
      if (owner !== undefined && !isAlive(owner)) rmSync(`${above}/${name}`, { recursive: true, force: true })
    }
  } catch {
    // pen cannot read this directory, so it made nothing there.
  }
}
