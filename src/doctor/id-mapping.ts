/** Root maps itself away: whether the file systems that a sandbox of root's needs can do that, by trying on each. */

import { Staging } from '../backend/process/staging.ts'
import { isHostRoot } from '../base/host-root.ts'
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
  const places = [project?.world.workspace, scratch].filter(path => path !== undefined)
  const undo = new UndoStack()
  try {
    const staging = new Staging(SOMEBODY, undo)
    for (const path of places) staging.stage(path, 'directory', true)
    return [
      ok(
        ID,
        `root can be mapped away on the file systems of ${project === undefined ? '' : 'the project and of '}pen’s state`,
      ),
    ]
  } catch (error) {
    return [fails(ID, messageOf(error), 'no command may run as root', hintOf(error))]
  } finally {
    await undo.unwind()
  }
}
