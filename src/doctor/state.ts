/** Checks that only this user can write pen's configs, audit and caches. */
import { lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { cgroupName } from '../limits/cgroup-name.ts'
import { describePlace, nearestExisting } from './file-systems.ts'
import { type Finding, fails, weak } from './finding.ts'
import type { Machine } from './machine.ts'

const ID = 'state'

export async function checkState({ state, project }: Machine): Promise<readonly Finding[]> {
  const sandbox = project === undefined ? [] : ['audit', 'volumes'].map(name => `${project.stateDir}/${name}`)
  const places = [`${state}/cache/etc`, `${state}/sandboxes`, ...sandbox]
  for (const place of new Set(places.map(nearestExisting))) {
    const problem = tryToWrite(place)
    if (problem !== undefined)
      return [
        fails(
          ID,
          `cannot write in ${place} (${problem})`,
          'pen stores configs, audits and caches there, and runs nothing without an audit',
          problem === 'ENOTDIR'
            ? `mv ${place} ${place}.old, because it is not a directory`
            : `sudo chown -R "$(id -u)" ${state}; chmod -R u+rwX ${state}`,
        ),
      ]
  }
  const open = [state, `${state}/sandboxes`, ...(project === undefined ? [] : [project.stateDir])].filter(
    path => isOpen(path, 0o022),
  )
  if (open.length > 0)
    return [
      // If every user can write all of it, pen refuses to run.
      (isOpen(state, 0o002) ? fails : weak)(
        ID,
        `other users can write ${open.join(' and ')}`,
        'they could change what your sandboxes can do',
        `chmod go-w ${open.join(' ')}`,
      ),
    ]
  return [describePlace(ID, state)]
}

/** Creates and removes a directory, as a run does. */
function tryToWrite(dir: string): string | undefined {
  const made = `${dir}/.${cgroupName('probe')}`
  try {
    mkdirSync(made, { mode: 0o700 })
    rmdirSync(made)
    return undefined
  } catch (error) {
    return errnoOf(error) ?? 'unknown error'
  }
}

function isOpen(path: string, to: number): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats?.isDirectory() === true && (stats.mode & to) !== 0
}
