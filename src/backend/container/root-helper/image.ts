/**
 * What the helper's container is made of: nothing. The sandbox's image may be anybody's, and its variables and files would be around a
 * program that is root on the host. An empty one is named by the digest of its contents: no other image can take its place.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { writeFileAtomically } from '../../../base/atomic-file.ts'
import { PenError } from '../../../base/error.ts'
import { readRegularFile } from '../../../base/regular-file.ts'
import { askEngine, type Engine, tryEngine } from '../engine/engine.ts'

/** For people who list their images. */
const NAME = 'pen/helper:1'
/** A tar archive without an entry. */
const NOTHING = '\0'.repeat(1024)
const EMPTY_LAYER = `sha256:${createHash('sha256').update(NOTHING).digest('hex')}`
const ID = /^sha256:[0-9a-f]{64}$/

/** Runs what needs it; made anew when the engine has it no more. */
export async function withRootHelperImage<T>(
  engine: Engine,
  cacheDir: string,
  run: (id: string) => Promise<T>,
): Promise<T> {
  const known = recall(cacheDir)
  if (known === undefined) return await run(await make(engine, cacheDir))
  try {
    return await run(known)
  } catch (error) {
    if (!(error instanceof PenError && error.code === 'IMAGE')) throw error
    return await run(await make(engine, cacheDir))
  }
}

const fileOf = (cacheDir: string): string => `${cacheDir}/docker-helper`

async function make(engine: Engine, cacheDir: string): Promise<string> {
  const id =
    (await found(engine)) ?? (await askEngine(engine, ['import', '-', NAME], { input: NOTHING })).trim()
  if (!ID.test(id)) throw new PenError('BACKEND', { what: 'the engine did not say which image it made' })
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 })
  writeFileAtomically(fileOf(cacheDir), id)
  return id
}

/** Another pen's, of this user or of another. The name alone says nothing: anybody's image may bear it. */
async function found(engine: Engine): Promise<string | undefined> {
  const format = '{{.Id}} {{json .RootFS.Layers}} {{json .Config}}'
  const { code, stdout } = await tryEngine(engine, ['image', 'inspect', '--format', format, NAME])
  const [, id, layers, settings = ''] = /^(\S+) (\S+) (.*)$/.exec(stdout.trim()) ?? []
  return code === 0 && layers === JSON.stringify([EMPTY_LAYER]) && isNothing(settings) ? id : undefined
}

/** No variable, no volume, nothing that the engine would do for it. */
function isNothing(settings: string): boolean {
  const values = Object.values((JSON.parse(settings) as Record<string, unknown> | null) ?? {})
  return values.every(value => ['null', 'false', '""', '[]', '{}'].includes(JSON.stringify(value)))
}

/** The file is pen's own; a broken one is as good as none. */
function recall(cacheDir: string): string | undefined {
  try {
    const text = readRegularFile(fileOf(cacheDir), { maxBytes: 128, owner: 'self-or-root' })?.toString('utf8')
    return text !== undefined && ID.test(text) ? text : undefined
  } catch {
    return undefined
  }
}
