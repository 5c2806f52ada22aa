/**
 * What pen must know of an image before it starts one: its accounts, and that pen's agent can run in it. Nothing of the image is
 * run for that. Its files are hostile: they are read from the engine's archive, bounded, and only as text.
 */
import { mkdirSync } from 'node:fs'
import { type Engine, tryEngine } from '../backend/container/engine.ts'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { type ArchivedFile, textFiles } from './archive.ts'

export interface ImageFacts {
  /** `/etc/passwd` of the image; empty where it has none that is a plain file. */
  readonly passwd: string
  readonly group: string
}

const ID = /^(?:sha256:)?[0-9a-f]{64}$/
const MAX_ARCHIVE = 2 ** 19
const MAX_LOADER = 8 * 2 ** 20

/** The program that starts pen's own: the binary is made for the C library that nearly all images have. */
const LOADERS: Readonly<Record<string, string>> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
}

/** As the engine itself spells the name of an image that was built here: podman would look elsewhere for a shorter one. */
export const localName = ({ name }: Pick<Engine, 'name'>, image: string): string =>
  name === 'podman' ? `localhost/${image}` : image

/** Undefined when the engine has none of that name. */
export async function findImage(engine: Engine, name: string): Promise<string | undefined> {
  const { code, stdout } = await tryEngine(engine, ['image', 'inspect', '--format', '{{.Id}}', name])
  const id = stdout.trim()
  return code === 0 && ID.test(id) ? id : undefined
}

/** Asked once for each image: what an id stands for does not change. */
export async function imageFacts(engine: Engine, id: string, cacheDir: string): Promise<ImageFacts> {
  const directory = `${cacheDir}/images`
  const file = `${directory}/${id.replace('sha256:', '')}.json`
  const known = readRegularFile(file, { maxBytes: 4 * MAX_ARCHIVE, owner: 'self-or-root' })
  const remembered = known === undefined ? undefined : parseFacts(known.toString('utf8'))
  if (remembered !== undefined) return remembered
  const facts = await lookInside(engine, id)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writeFileAtomically(file, JSON.stringify(facts))
  return facts
}

function parseFacts(text: string): ImageFacts | undefined {
  try {
    const value = JSON.parse(text) as Partial<ImageFacts> | null
    if (typeof value?.passwd !== 'string' || typeof value.group !== 'string') return undefined
    return { passwd: value.passwd, group: value.group }
  } catch {
    return undefined // asked anew
  }
}

async function lookInside(engine: Engine, id: string): Promise<ImageFacts> {
  return await withContainer(engine, id, async container => {
    await requireLoader(engine, container)
    const read = async (path: string): Promise<string> =>
      (await copiedOut(engine, container, path))[0]?.text ?? ''
    return { passwd: await read('/etc/passwd'), group: await read('/etc/group') }
  })
}

/** The text files at and below a path of the image. */
export const filesOf = (engine: Engine, id: string, path: string): Promise<readonly ArchivedFile[]> =>
  withContainer(engine, id, container => copiedOut(engine, container, path))

async function copiedOut(engine: Engine, container: string, path: string): Promise<readonly ArchivedFile[]> {
  const { code, stdout } = await tryEngine(engine, ['cp', `${container}:${path}`, '-'], {
    maxOutput: MAX_ARCHIVE,
  })
  return code === 0 ? textFiles(Buffer.from(stdout)) : []
}

/** Created and never started. */
async function withContainer<T>(
  engine: Engine,
  id: string,
  look: (container: string) => Promise<T>,
): Promise<T> {
  const words = ['create', '--network=none', '--pull=never', '--label=pen=1', id, '/nothing']
  const created = await tryEngine(engine, words)
  const container = created.stdout.trim()
  if (created.code !== 0 || !ID.test(container))
    throw new PenError('BACKEND', {
      what: `${engine.name} cannot make a container of the image: ${printable(created.stderr.trim(), 400)}`,
      hint: 'build it anew with pen build --no-cache',
    })
  try {
    return await look(container)
  } finally {
    await tryEngine(engine, ['rm', '--force', container])
  }
}

async function requireLoader(engine: Engine, container: string): Promise<void> {
  const loader = LOADERS[process.arch]
  if (loader === undefined)
    throw new PenError('BACKEND', {
      what: `pen knows no container images for ${process.arch}`,
      hint: 'use the backend "process"',
    })
  const { code } = await tryEngine(engine, ['cp', `${container}:${loader}`, '-'], { maxOutput: MAX_LOADER })
  if (code === 0) return
  throw new PenError('BACKEND', {
    what: `the image has no ${loader}: pen's own program, which starts every command inside, needs the GNU C library`,
    hint: 'build on an image with glibc (Debian, Ubuntu, Fedora), not on Alpine or an empty one',
  })
}
