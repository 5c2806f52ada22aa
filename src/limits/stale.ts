/**
 * A pen that was killed with SIGKILL leaves empty cgroups, and the next pen removes them. That pen may run in another cgroup, as
 * after a new login. So a small file lists every parent in which pen ever made one.
 */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { removeCgroup } from './cgroup.ts'
import { ownerOf } from './cgroup-name.ts'

/** Removes or only lists what dead pens left in these parents. Costs one lookup per parent. */
function sweepParents(
  parents: Iterable<string>,
  { remove }: { readonly remove: boolean } = { remove: true },
): { readonly gone: readonly string[]; readonly swept: readonly string[] } {
  const gone: string[] = []
  const swept: string[] = []
  for (const parent of parents) {
    let names: string[]
    try {
      const stats = statSync(parent, { throwIfNoEntry: false })
      if (stats === undefined) gone.push(parent)
      // A cgroup with two links has no children, so it needs no listing.
      if (stats === undefined || stats.nlink === 2) continue
      names = readdirSync(parent)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') gone.push(parent)
      continue
    }
    for (const name of names) {
      const owner = name.startsWith('pen-') ? ownerOf(name) : undefined
      // A cgroup with processes cannot be removed: its sandbox is just ending, and the next sweep finds it empty.
      if (owner === undefined || isAlive(owner)) continue
      const path = `${parent}/${name}`
      if (!remove || removeCgroup(path)) swept.push(path)
    }
  }
  return { gone, swept }
}

/** Sweeps every recorded parent and `more`, and returns the cgroups found. */
export const sweepRemembered = (
  file: string,
  options: { readonly remove: boolean },
  more: Iterable<string> = [],
): readonly string[] => sweepParents(new Set([...readParents(file), ...more]), options).swept

function readParents(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter(line => line.startsWith('/'))
  } catch {
    return []
  }
}

/**
 * Sweeps the recorded parents and the current ones, and records the new ones. The file is in the user's state. It can only cause
 * the removal of empty cgroups with pen's name.
 */
export function sweepAndRemember(file: string, now: Iterable<string>): void {
  const known = readParents(file)
  const parents = new Set([...known, ...now])
  const gone = new Set(sweepParents(parents).gone)
  const fresh = [...parents].filter(parent => !known.includes(parent) && !gone.has(parent))
  if (fresh.length === 0 && gone.size === 0) return
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const text = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
    // Concurrent appends lose nothing. A rewrite may lose a line, which the other pen appends again next time.
    if (gone.size === 0) appendFileSync(file, text(fresh), { mode: 0o600 })
    else writeFileSync(file, text([...parents].filter(parent => !gone.has(parent))), { mode: 0o600 })
  } catch {
    // A full disk or a read-only home: pens in the same cgroup still sweep these parents.
  }
}
