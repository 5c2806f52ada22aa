/** Whether a process of the sandbox has a replaced file open. Until it stands still, it is paused. */
import type { Running } from '../backend/backend.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { isOpenInside, type OpenFile } from '../base/kernel/open-inside.ts'

/** How long a paused sandbox may take to stand still. */
const STILL_MS = 400

/** The file at this path, if no process inside has it open. Undefined also when that cannot be known. */
export async function closedFile(
  path: string,
  running: Running,
  whilePaused: (act: () => Promise<void>) => Promise<void>,
): Promise<OpenFile | undefined> {
  const init = running.initPid()
  // The file server of another kernel keeps files open by itself.
  if (init === undefined || running.ownKernel === true) return undefined
  let found = look(init, path)
  if (found === undefined)
    await whilePaused(async () => {
      const end = performance.now() + STILL_MS
      while (found === undefined && performance.now() < end) {
        found = look(init, path)
        if (found === undefined) await Bun.sleep(STILL_MS / 20)
      }
    })
  return found === 'open' ? undefined : found
}

function look(init: number, path: string): OpenFile | 'open' | undefined {
  const stats = lookAt(path)
  if (stats === undefined) return 'open'
  const file = { path, dev: stats.dev, ino: stats.ino }
  const isOpen = isOpenInside(init, file)
  return isOpen === undefined ? undefined : isOpen ? 'open' : file
}
