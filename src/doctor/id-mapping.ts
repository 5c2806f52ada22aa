/** Checks that file systems support id-mapped mounts, which a sandbox needs if root starts it. */
import { statSync } from 'node:fs'
import { Staging } from '../backend/process/staging.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { UndoStack } from '../base/undo.ts'
import { type Finding, fails, hintOf, messageOf, ok } from './finding.ts'
import type { Machine } from './machine.ts'

const ID = 'id-mapped-mounts'
/** Any user except root. Nothing runs as this user. */
const TEST_USER = { uid: 1000, gid: 1000 }

export async function checkIdMapping({ project, scratch }: Machine): Promise<readonly Finding[]> {
  try {
    if (!isHostRoot()) return []
  } catch (error) {
    return [fails(ID, messageOf(error), undefined, hintOf(error))]
  }
  // In another user's project, root runs the sandbox as that user and maps nothing.
  const workspace = project?.world.workspace
  const own = workspace !== undefined && statSync(workspace).uid === 0 ? workspace : undefined
  const places = [own, scratch].filter(path => path !== undefined)
  const undo = new UndoStack()
  try {
    const staging = new Staging(TEST_USER, undo)
    for (const path of places) staging.stage(path, 'directory', true)
    return [
      ok(
        ID,
        `id-mapped mounts work on the file systems of ${own === undefined ? '' : 'the project and of '}pen's state`,
      ),
    ]
  } catch (error) {
    return [fails(ID, messageOf(error), 'commands must not run as root', hintOf(error))]
  } finally {
    await undo.unwind()
  }
}
