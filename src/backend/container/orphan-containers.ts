/**
 * Containers whose supervisor has died. The engine usually removes them by itself. These remain when the engine was
 * killed too.
 */
import { existsSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { orphanId, removeContainer } from './container.ts'
import { type Engine, findEngine, mayUseDaemon, tryEngine } from './engine/engine.ts'
import { unfinishedIn } from './engine/unfinished.ts'

const ANSWER_MS = 10_000

interface Removal {
  readonly remove: boolean
}

/** Returns the names of orphans, and removes them if asked. An engine that does not answer has none. */
export async function orphanContainers(cacheDir: string, removal: Removal): Promise<string[]> {
  const left: string[] = []
  for (const engine of enginesInUse(cacheDir))
    left.push(...(await orphansIn(engine, removal)), ...(await leftUnfinished(engine, removal)))
  return left
}

/** The same for one engine, and only for names with this prefix. */
export async function orphansIn(engine: Engine, { remove }: Removal, prefix = 'pen-'): Promise<string[]> {
  const left: string[] = []
  for (const name of await ownContainers(engine)) {
    const id = name.startsWith(prefix) ? await orphanId(engine, name) : undefined
    if (id === undefined) continue
    if (remove) await removeContainer(engine, id)
    left.push(name)
  }
  return left
}

async function leftUnfinished(engine: Engine, { remove }: Removal): Promise<string[]> {
  const left = await unfinishedIn(engine)
  for (const { id } of remove ? left : []) await removeContainer(engine, id)
  return left.map(({ name }) => name)
}

/**
 * Skips an engine that pen never used: asking rootless podman would create files and a process. Docker's daemon runs
 * anyway.
 */
export function enginesInUse(cacheDir: string): Engine[] {
  const podman = existsSync(`${cacheDir}/podman.json`) ? findEngine('podman') : undefined
  return [podman, ourDocker()].flatMap(engine => engine ?? [])
}

/** A daemon on another machine has no containers of pen. */
function ourDocker(): Engine | undefined {
  try {
    const docker = findEngine('docker')
    return docker !== undefined && mayUseDaemon(docker) ? docker : undefined
  } catch (error) {
    if (error instanceof PenError) return undefined
    throw error
  }
}

async function ownContainers(engine: Engine): Promise<string[]> {
  const argv = ['ps', '--all', '--filter', 'label=pen=1', '--format', '{{.Names}}']
  const { code, stdout } = await tryEngine(engine, argv, { timeoutMs: ANSWER_MS })
  return code === 0 ? stdout.split('\n').filter(name => /^pen-[a-z0-9-]+$/.test(name)) : []
}
