/**
 * The image of the root helper's container is empty. The sandbox's image may come from anyone, and its variables and
 * files would affect a program that is root on the host. The empty image is identified by the digest of its contents,
 * so no other image can replace it.
 */
import { PenError } from '../../../base/error.ts'
import { recall, remember } from '../../../base/fact-cache.ts'
import { sha256 } from '../../../base/sha256.ts'
import { type Engine, runEngine, tryEngine } from '../engine/engine.ts'

/** A readable name for `docker images`. */
const NAME = 'pen/helper:1'
/** A tar archive without an entry. */
const EMPTY_ARCHIVE = '\0'.repeat(1024)
const EMPTY_LAYER = `sha256:${sha256(EMPTY_ARCHIVE)}`
const ID = /^sha256:[0-9a-f]{64}$/

/** Calls `run` with the image. Makes the image again when the engine has lost it. */
export async function withRootHelperImage<T>(
  engine: Engine,
  cacheDir: string,
  run: (id: string) => Promise<T>,
): Promise<T> {
  const known = recall<string>(fileOf(cacheDir), EMPTY_LAYER)
  if (known === undefined) return await run(await make(engine, cacheDir))
  try {
    return await run(known)
  } catch (error) {
    if (!(error instanceof PenError && error.code === 'IMAGE')) throw error
    return await run(await make(engine, cacheDir))
  }
}

const fileOf = (cacheDir: string): string => `${cacheDir}/docker-helper.json`

async function make(engine: Engine, cacheDir: string): Promise<string> {
  const id =
    (await findImage(engine)) ??
    (await runEngine(engine, ['import', '-', NAME], { input: EMPTY_ARCHIVE })).trim()
  if (!ID.test(id)) throw new PenError('BACKEND', { what: 'the engine did not report which image it made' })
  remember(fileOf(cacheDir), EMPTY_LAYER, id)
  return id
}

/** Finds the image of another pen or user. Any image can have this name, so its contents are checked. */
async function findImage(engine: Engine): Promise<string | undefined> {
  const format = '{{.Id}} {{json .RootFS.Layers}} {{json .Config}}'
  const { code, stdout } = await tryEngine(engine, ['image', 'inspect', '--format', format, NAME])
  const [, id, layers, settings = ''] = /^(\S+) (\S+) (.*)$/.exec(stdout.trim()) ?? []
  return code === 0 && layers === JSON.stringify([EMPTY_LAYER]) && isEmptyConfig(settings) ? id : undefined
}

/** No variable, no volume, and no other setting. */
function isEmptyConfig(settings: string): boolean {
  const values = Object.values((JSON.parse(settings) as Record<string, unknown> | null) ?? {})
  return values.every(value => ['null', 'false', '""', '[]', '{}'].includes(JSON.stringify(value)))
}
