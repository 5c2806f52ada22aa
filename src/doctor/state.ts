/** Where pen keeps config, audit and caches: whether this user can write all of it, and nobody else any of it. */
import { lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { cgroupName } from '../limits/cgroup-name.ts'
import { describePlace, nearestThere } from './file-systems.ts'
import { type Finding, fails, weak } from './finding.ts'
import type { Machine } from './machine.ts'

const ID = 'state'

export async function checkState({ state, project }: Machine): Promise<readonly Finding[]> {
  const sandbox = project === undefined ? [] : ['audit', 'volumes'].map(name => `${project.stateDir}/${name}`)
  const places = [`${state}/cache/etc`, `${state}/sandboxes`, ...sandbox]
  for (const place of new Set(places.map(nearestThere))) {
    const problem = tryToWrite(place)
    if (problem !== undefined)
      return [
        fails(
          ID,
          `nothing can be made in ${place} (${problem})`,
          'config, audit and caches are kept there, and nothing runs without an audit',
          problem === 'ENOTDIR'
            ? `something else stands in its place: move ${place} away`
            : `make it yours and writable: sudo chown -R "$(id -u)" ${state}; chmod -R u+rwX ${state}`,
        ),
      ]
  }
  const open = [state, `${state}/sandboxes`, ...(project === undefined ? [] : [project.stateDir])].filter(
    path => isOpen(path, 0o022),
  )
  if (open.length > 0)
    return [
      // Where every user may write the whole of it, nothing runs.
      (isOpen(state, 0o002) ? fails : weak)(
        ID,
        `other users can write ${open.join(' and ')}`,
        'they could give themselves a say in what your sandboxes may do',
        `chmod go-w ${open.join(' ')}`,
      ),
    ]
  return [describePlace(ID, state)]
}

/** By making a directory, which is what a run does, and taking it away. */
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
