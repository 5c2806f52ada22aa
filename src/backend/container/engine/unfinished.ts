/**
 * A podman that was killed while it made a container leaves storage without a record. No label says who made it. pen
 * recognizes it by a name that only pen uses, and by an age that no start reaches.
 */
import { CONTAINER_ID, type Engine, TIME_LIMIT_MS, tryEngine } from './engine.ts'

export interface Unfinished {
  readonly id: string
  readonly name: string
}

/** `pen-`, the sandbox, and the run when the first name was taken. */
const OWN_NAME = /^pen-[a-z0-9-]+-[0-9a-f]{16}(-\d{8}-\d{6}-[0-9a-f]{6}(-helper)?)?$/

export async function unfinishedIn(engine: Engine): Promise<Unfinished[]> {
  if (engine.name !== 'podman') return []
  const { code, stdout } = await tryEngine(engine, ['ps', '--all', '--external', '--format', 'json'])
  return code === 0 ? unfinishedAmong(stdout, Date.now()) : []
}

/** A start ends after `TIME_LIMIT_MS`, so older storage has no owner. */
export function unfinishedAmong(listed: string, now: number): Unfinished[] {
  const containers = JSON.parse(listed) as Record<string, unknown>[] | null
  return (containers ?? []).flatMap(({ Id, Names, State, Created }): Unfinished[] => {
    const name: unknown = Array.isArray(Names) ? Names[0] : undefined
    if (State !== 'storage' || typeof name !== 'string' || !OWN_NAME.test(name)) return []
    if (typeof Created !== 'number' || now - Created * 1000 < 2 * TIME_LIMIT_MS) return []
    return typeof Id === 'string' && CONTAINER_ID.test(Id) ? [{ id: Id, name }] : []
  })
}
