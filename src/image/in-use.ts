/**
 * Which of pen's images are still needed. A sandbox needs the image that it used last, and the newest of pen's own stays for the
 * next one. All other images of this user's pen are unused.
 */
import { type Engine, tryEngine } from '../backend/container/engine/engine.ts'
import { enginesInUse } from '../backend/container/orphan-containers.ts'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { sha256 } from '../base/sha256.ts'
import { IMAGE_ID, localName } from './inspect.ts'

const NAME = /^pen\/[a-z0-9][a-z0-9-]*:[0-9a-f]{16}$/
const ANSWER_MS = 10_000
const OWN = 'pen/default:'

/** A label on every image that pen builds. Other users' images on the same engine have another label. */
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
  /** Also the newest of pen's own images, for an uninstall. */
  readonly newest?: boolean
}

/** The names of unused images. Removes them if asked. */
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
 * Ids of images that lost their name to a later build. An image that a container still uses stays until the next time. The
 * label selects this user's images, because a daemon also has unnamed images of others.
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

/** Without the newest of pen's own images. On a daemon without any of those, because other users may share them. */
async function ownImages(engine: Engine, label: string, newest: boolean): Promise<string[]> {
  const ofProjects = (await listImages(engine, label)).filter(name => !name.startsWith(OWN))
  if (engine.daemon) return ofProjects
  const own = (await listImages(engine, 'pen=1')).filter(name => name.startsWith(OWN))
  return [...ofProjects, ...own.slice(newest ? 0 : 1)]
}

/** Newest first, as engines list them. */
async function listImages(engine: Engine, label: string): Promise<string[]> {
  const argv = ['images', '--filter', `label=${label}`, '--format', '{{.Repository}}:{{.Tag}}']
  const { code, stdout } = await tryEngine(engine, argv, { timeoutMs: ANSWER_MS })
  const names = code === 0 ? stdout.split('\n') : []
  return names.map(name => name.replace(/^localhost\//, '')).filter(name => NAME.test(name))
}

/** The engine keeps an image that a container uses. */
const isRemoved = async (engine: Engine, image: string): Promise<boolean> =>
  (await tryEngine(engine, ['rmi', image], { timeoutMs: ANSWER_MS })).code === 0
