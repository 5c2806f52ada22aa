/** Makes a directory a project. Only what is written here goes into the live config: what was in `.pen/` before has to be shown. */
import { rewriteLiveConfig, sameBytes, whileLocked } from './edit.ts'
import { type Initial, initialConfig } from './initial.ts'
import { findLive } from './layers.ts'
import { DOCUMENTS, PenDirectory } from './pen-directory.ts'
import type { Project } from './project.ts'

export interface Initialized {
  /** Whether `.pen/config.json` was written. */
  readonly wrote: boolean
  readonly live: 'written' | 'kept' | 'absent'
  readonly groups: Initial['groups']
  /** Whether the two differ, to the byte. */
  readonly differs: boolean
}

export async function initialize(project: Project, schema: string): Promise<Initialized> {
  const initial = initialConfig(project.world.workspace)
  const wrote = await whileLocked(project, () => writeProject(project, initial.text, schema))
  const before = findLive(project).live
  if (before === undefined && wrote) {
    let isNew = true
    await rewriteLiveConfig(project, now => {
      isNew = now === undefined
      return now ?? initial.text
    })
    if (isNew) return { wrote, live: 'written', groups: initial.groups, differs: false }
  }
  const live = findLive(project).live
  return {
    wrote,
    live: live === undefined ? 'absent' : 'kept',
    groups: [],
    differs: !sameBytes(live?.bytes, readProject(project)),
  }
}

/** False when the project has a configuration already, of whatever kind. */
function writeProject(project: Project, text: string, schema: string): boolean {
  using there = PenDirectory.open(project.world.workspace)
  if (there !== undefined && DOCUMENTS.some(name => there.read(name) !== undefined)) return false
  using directory = PenDirectory.openOrMake(project.world.workspace)
  directory.write('config.schema.json', schema)
  directory.write('config.json', text)
  directory.confirmStays()
  return true
}

function readProject(project: Project): Buffer | undefined {
  using directory = PenDirectory.open(project.world.workspace)
  return directory?.read('config.json')?.bytes
}
