/** Root maps itself away: whether the file systems that a sandbox of root's needs can do that, by trying on each. */
import { statSync } from 'node:fs'
import { Staging } from '../backend/process/staging.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { UndoStack } from '../base/undo.ts'
import { type Finding, fails, ok } from './finding.ts'
import type { Machine } from './machine.ts'
import { hintOf, messageOf } from './message.ts'

const ID = 'id-mapped-mounts'
/** Any uid but root's; nothing runs as it. */
const SOMEBODY = { uid: 1000, gid: 1000 }

export async function checkIdMapping({ project, scratch }: Machine): Promise<readonly Finding[]> {
  try {
    if (!isHostRoot()) return []
  } catch (error) {
    return [fails(ID, messageOf(error), undefined, hintOf(error))]
  }
  // In a project of somebody else's root runs the sandbox as that user, and maps nothing there.
  const workspace = project?.world.workspace
  const own = workspace !== undefined && statSync(workspace).uid === 0 ? workspace : undefined
  const places = [own, scratch].filter(path => path !== undefined)
  const undo = new UndoStack()
  try {
    const staging = new Staging(SOMEBODY, undo)
    for (const path of places) staging.stage(path, 'directory', true)
    return [
      ok(
        ID,
        `root can be mapped away on the file systems of ${own === undefined ? '' : 'the project and of '}pen’s state`,
      ),
    ]
  } catch (error) {
    return [fails(ID, messageOf(error), 'no command may run as root', hintOf(error))]
  } finally {
    await undo.unwind()
  }
}
