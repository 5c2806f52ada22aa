/**
 * What pen needs to know about an image before a start. Nothing of the image runs for that. Its files are hostile: they are read
 * from the engine's archive, bounded and as text.
 */
import { type Engine, engineError, runEngine, tryEngine } from '../backend/container/engine/engine.ts'
import { orphansIn } from '../backend/container/orphan-containers.ts'
import { SUPERVISOR_LABEL, supervisorLabel } from '../backend/container/supervisor-label.ts'
import { PenError } from '../base/error.ts'
import { recall, remember } from '../base/fact-cache.ts'
import { printable } from '../base/printable.ts'
import { sha256 } from '../base/sha256.ts'

export interface ImageFacts {
  /** The image's `/etc/passwd`; empty if it is missing or not a plain file. */
  readonly passwd: string
  readonly group: string
  /** The paths of the image's volumes. */
  readonly volumes: readonly string[]
  /** The image's PATH; empty if it sets none. */
  readonly path: string
}

export const IMAGE_ID = /^(?:sha256:)?[0-9a-f]{64}$/
const MAX_ARCHIVE = 4 * 2 ** 20

/** The engine's name for a local image. */
export const localName = ({ localPrefix }: Pick<Engine, 'localPrefix'>, image: string): string =>
  `${localPrefix}${image}`

/** What podman and Docker print for an unknown image. Any other error says nothing about the image. */
const UNKNOWN = /\b(image not known|no such image)\b/i
/** Delays between retries: podman fails briefly while another process removes images from the same storage. */
const PAUSES_MS = [100, 200, 400, 800] as const

/** Undefined when the engine has no image of that name. */
export async function findImage(engine: Engine, name: string): Promise<string | undefined> {
  const look = () => tryEngine(engine, ['image', 'inspect', '--format', '{{.Id}}', name])
  let answer = await look()
  for (const pause of PAUSES_MS) {
    if (answer.code === 0 || answer.ended === 'timeout' || UNKNOWN.test(answer.stderr)) break
    await new Promise(resolve => setTimeout(resolve, pause))
    answer = await look()
  }
  const id = answer.stdout.trim()
  if (answer.code === 0 && IMAGE_ID.test(id)) return id
  if (answer.code !== 0 && UNKNOWN.test(answer.stderr)) return undefined
  throw engineError(engine, answer)
}

/** In the cache: the engine has no image of that name, until one is built. */
export const ABSENT = 'absent'

/**
 * The image that a name meant last, because an engine's answer takes longer than the rest of a start. An id names contents, so a
 * stale entry never starts other contents. If the image is gone, the start fails and asks the engine again.
 */
export function cachedImageId(engine: Engine, name: string, cacheDir: string): string | undefined {
  const { file, key } = idPlace(engine, name, cacheDir)
  const id = recall<string>(file, key)
  return id === ABSENT || IMAGE_ID.test(id ?? '') ? id : undefined
}

export function cacheImageId(engine: Engine, name: string, id: string, cacheDir: string): void {
  const { file, key } = idPlace(engine, name, cacheDir)
  remember(file, key, id)
}

/** The same name can mean another image in another storage. */
function idPlace({ name: engine, flags, env }: Engine, name: string, cacheDir: string) {
  const key = sha256(JSON.stringify([engine, flags, Object.entries(env), name]))
  return { file: `${cacheDir}/images/by-name/${key}`, key }
}

/** Cached forever, because the content of an id never changes. */
export async function imageFacts(engine: Engine, id: string, cacheDir: string): Promise<ImageFacts> {
  const known = cachedFacts(id, cacheDir)
  if (known !== undefined) return known
  const facts = await lookInside(engine, id)
  remember(factsFile(id, cacheDir), FACTS_KEY, facts)
  return facts
}

/** Changes with the shape of `ImageFacts`. */
const FACTS_KEY = 'image facts 1'

export const cachedFacts = (id: string, cacheDir: string): ImageFacts | undefined =>
  recall(factsFile(id, cacheDir), FACTS_KEY, 4 * MAX_ARCHIVE)

const factsFile = (id: string, cacheDir: string): string =>
  `${cacheDir}/images/${id.replace('sha256:', '')}.json`

async function lookInside(engine: Engine, id: string): Promise<ImageFacts> {
  return await withContainer(engine, id, async container => {
    const read = async (path: string): Promise<string> =>
      (await copiedOut(engine, container, path))[0]?.text ?? ''
    const settings = await settingsOf(engine, id)
    return { passwd: await read('/etc/passwd'), group: await read('/etc/group'), ...settings }
  })
}

interface Settings {
  /** `{"/data":{}}` */
  readonly Volumes?: Readonly<Record<string, unknown>> | null
  readonly Env?: readonly string[] | null
}

async function settingsOf(engine: Engine, id: string): Promise<Pick<ImageFacts, 'volumes' | 'path'>> {
  const said = await runEngine(engine, ['image', 'inspect', '--format', '{{json .Config}}', id])
  const { Volumes, Env } = (JSON.parse(said) as Settings | null) ?? {}
  const path = Env?.findLast(variable => variable.startsWith('PATH='))?.slice('PATH='.length)
  return { volumes: Object.keys(Volumes ?? {}), path: path ?? '' }
}

/** The text files at and below these paths in the image. */
export const filesOf = (
  engine: Engine,
  id: string,
  paths: readonly string[],
): Promise<readonly ArchivedFile[]> =>
  withContainer(engine, id, async container => {
    const found: ArchivedFile[] = []
    for (const path of paths) found.push(...(await copiedOut(engine, container, path)))
    return found
  })

/** What podman and Docker print for a path that the image does not have. */
const NO_FILE = /no such file|no such container:path|could not (?:find|be found)|not found/i

/** Throws when a file cannot be read completely, because half a list of users or mirrors would look like the whole. */
async function copiedOut(engine: Engine, container: string, path: string): Promise<readonly ArchivedFile[]> {
  const said = await tryEngine(engine, ['cp', `${container}:${path}`, '-'], { maxOutput: MAX_ARCHIVE })
  if (said.code === 0) return textFiles(Buffer.from(said.stdout))
  if (said.ended === 'output')
    throw new PenError('BACKEND', {
      what: `${path} of the image has more than ${MAX_ARCHIVE} bytes, which is more than pen reads`,
      hint: 'use an image in which it is smaller',
    })
  if (said.ended === 'exit' && NO_FILE.test(said.stderr)) return []
  throw engineError(engine, said)
}

interface ArchivedFile {
  readonly name: string
  readonly text: string
}

const BLOCK = 512

/**
 * The plain text files of a tar archive, up to the first error. The archive is hostile: it is read as text and never unpacked. Links,
 * devices and long names are skipped.
 */
export function textFiles(archive: Buffer): ArchivedFile[] {
  const found: ArchivedFile[] = []
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const field = (from: number, to: number): string =>
      archive.toString('latin1', at + from, at + to).replace(/[\0 ]+$/, '')
    const octal = field(124, 136)
    if (!/^[0-7]{1,11}$/.test(octal)) break
    const begin = at + BLOCK
    const end = begin + Number.parseInt(octal, 8)
    if (end > archive.length) break
    const text = archive.toString('utf8', begin, end)
    if (['0', ''].includes(field(156, 157)) && !/[\0\ufffd]/.test(text))
      found.push({ name: field(0, 100), text })
    at = begin + Math.ceil((end - begin) / BLOCK) * BLOCK
  }
  return found
}

/** The name prefix of these containers. */
const LOOK = 'pen-look-'

/** The container is created and never started. If pen is killed, the next lookup or `pen gc` removes it. */
async function withContainer<T>(
  engine: Engine,
  id: string,
  look: (container: string) => Promise<T>,
): Promise<T> {
  const name = `${LOOK}${crypto.getRandomValues(new Uint8Array(8)).toHex()}`
  const labels = ['--label=pen=1', `--label=${SUPERVISOR_LABEL}=${supervisorLabel()}`]
  const words = ['create', `--name=${name}`, '--network=none', '--pull=never', ...labels, id, '/nothing']
  const [created] = await Promise.all([tryEngine(engine, words), orphansIn(engine, { remove: true }, LOOK)])
  const container = created.stdout.trim()
  if (created.code !== 0 || !IMAGE_ID.test(container))
    throw new PenError('BACKEND', {
      what: `${engine.name} cannot make a container of the image: ${printable(created.stderr.trim(), 400)}`,
      hint: 'rebuild it: pen build --no-cache',
    })
  try {
    return await look(container)
  } finally {
    await tryEngine(engine, ['rm', '--force', '--volumes', container])
  }
}
