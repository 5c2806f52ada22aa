/**
 * Which images of pen's are still wanted: a sandbox that exists keeps the one that it used last, and the newest of pen's own stays for the
 * next. All else that this user's pen has built may go.
 */
import { type Engine, tryEngine } from '../backend/container/engine/engine.ts'
import { enginesInUse } from '../backend/container/left-containers.ts'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { sha256 } from '../base/sha256.ts'
import { IMAGE_ID, localName } from './inspect.ts'

const NAME = /^pen\/[a-z0-9][a-z0-9-]*:[0-9a-f]{16}$/
const ANSWER_MS = 10_000
const OWN = 'pen/default:'

/** On every image that pen builds. Others may build by the same engine: theirs are not ours to remove. */
export const ownerLabel = (stateOfUser: string): string => `pen.owner=${sha256(stateOfUser).slice(0, 16)}`

export function noteUse(stateDir: string, name: string): void {
  if (usedBy(stateDir) !== name) writeFileAtomically(`${stateDir}/image`, name)
}

function usedBy(stateDir: string): string | undefined {
  try {
    const name = readRegularFile(`${stateDir}/image`, { maxBytes: 256, owner: 'self-or-root' })?.toString()
    return name !== undefined && NAME.test(name) ? name : undefined
  } catch {
    return undefined
  }
}

interface Removal {
  readonly remove: boolean
  /** The newest of pen's own too: there is to be no next sandbox. */
  readonly newest?: boolean
}

/** Names of those that nobody wants any more, after they have been removed where that is asked for. */
export async function unusedImages(
  stateOfUser: string,
  stateDirs: readonly string[],
  { remove, newest = false }: Removal,
): Promise<string[]> {
  const wanted = new Set(stateDirs.flatMap(stateDir => usedBy(stateDir) ?? []))
  const unused: string[] = []
  for (const engine of enginesInUse(`${stateOfUser}/cache`)) {
    for (const image of await ownImages(engine, ownerLabel(stateOfUser), newest)) {
      if (wanted.has(image) || (remove && !(await isRemoved(engine, localName(engine, image))))) continue
      unused.push(image)
    }
    unused.push(...(await replacedImages(engine, stateOfUser, { remove })))
  }
  return unused
}

/**
 * Ids of images that lost their name to a later build. One that a container still has stays, and is found the next time. Only this user's,
 * by the label: a daemon has images without a name of others, too.
 */
export async function replacedImages(
  engine: Engine,
  stateOfUser: string,
  { remove }: Pick<Removal, 'remove'>,
): Promise<string[]> {
  const filters = ['dangling=true', `label=${ownerLabel(stateOfUser)}`].flatMap(one => ['--filter', one])
  const argv = ['images', '--quiet', '--no-trunc', ...filters]
  const { code, stdout } = await tryEngine(engine, argv, { timeoutMs: ANSWER_MS })
  const ids = new Set(code === 0 ? stdout.split('\n').filter(id => IMAGE_ID.test(id)) : [])
  const removed: string[] = []
  for (const id of ids) if (!remove || (await isRemoved(engine, id))) removed.push(id)
  return removed
}

/** But for the newest of pen's own; and of a daemon, which others may use too, none of those. */
async function ownImages(engine: Engine, label: string, newest: boolean): Promise<string[]> {
  const ofProjects = (await listImages(engine, label)).filter(name => !name.startsWith(OWN))
  if (engine.daemon) return ofProjects
  const own = (await listImages(engine, 'pen=1')).filter(name => name.startsWith(OWN))
  return [...ofProjects, ...own.slice(newest ? 0 : 1)]
}

/** The newest first, as engines list them. */
async function listImages(engine: Engine, label: string): Promise<string[]> {
  const argv = ['images', '--filter', `label=${label}`, '--format', '{{.Repository}}:{{.Tag}}']
  const { code, stdout } = await tryEngine(engine, argv, { timeoutMs: ANSWER_MS })
  const names = code === 0 ? stdout.split('\n') : []
  return names.map(name => name.replace(/^localhost\//, '')).filter(name => NAME.test(name))
}

/** One that a container still has stays. */
const isRemoved = async (engine: Engine, image: string): Promise<boolean> =>
  (await tryEngine(engine, ['rmi', image], { timeoutMs: ANSWER_MS })).code === 0
