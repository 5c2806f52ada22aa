import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** All records of all runs of one sandbox, in order. Empty when nothing ran yet. */
export function auditRecords<T = Record<string, unknown>>(stateDir: string): T[] {
  const dir = join(stateDir, 'audit')
  if (!existsSync(dir)) return []
  return readdirSync(dir)
    .sort()
    .flatMap(name =>
      readFileSync(join(dir, name), 'utf8')
        .split('\n')
        // After the last newline is a partial record, or nothing.
        .slice(0, -1)
        .map(line => JSON.parse(line) as T),
    )
}
