/**
 * A pen that was ended by SIGKILL leaves empty cgroups behind; the next one takes them away. It may stand in another
 * cgroup than the first (another login, another service), so the places where pen ever made one are kept in a small file.
 */

import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { removeCgroup } from './cgroup.ts'
import { ownerOf } from './cgroup-name.ts'

/** Takes away what dead pens left at these places, or only tells it. Costs one look at each place. */
export function sweepPlaces(
  places: Iterable<string>,
  { remove }: { readonly remove: boolean } = { remove: true },
): { readonly gone: readonly string[]; readonly swept: readonly string[] } {
  const gone: string[] = []
  const swept: string[] = []
  for (const place of places) {
    let names: string[]
    try {
      const stats = statSync(place, { throwIfNoEntry: false })
      if (stats === undefined) gone.push(place)
      // Two links are a cgroup's own: it has no children, and needs no listing.
      if (stats === undefined || stats.nlink === 2) continue
      names = readdirSync(place)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') gone.push(place)
      continue
    }
    for (const name of names) {
      const owner = name.startsWith('pen-') ? ownerOf(name) : undefined
      // One that still has processes refuses: its sandbox is just being ended, and the next sweep finds it empty.
      if (owner === undefined || isAlive(owner)) continue
      const path = `${place}/${name}`
      if (!remove || removeCgroup(path)) swept.push(path)
    }
  }
  return { gone, swept }
}

/** At every place where pen ever made one; tells which. */
export const sweepRemembered = (file: string, options: { readonly remove: boolean }): readonly string[] =>
  sweepPlaces(readPlaces(file), options).swept

function readPlaces(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter(line => line.startsWith('/'))
  } catch {
    return []
  }
}

/**
 * Sweeps every remembered place and those given now, and remembers the new ones. The file is pen's own, in the user's
 * state; all it can cause is the removal of empty cgroups with pen's name.
 */
export function sweepAndRemember(file: string, now: Iterable<string>): void {
  const known = readPlaces(file)
  const places = new Set([...known, ...now])
  const gone = new Set(sweepPlaces(places).gone)
  const fresh = [...places].filter(place => !known.includes(place) && !gone.has(place))
  if (fresh.length === 0 && gone.size === 0) return
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const text = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
    // Two pens at once: appending loses nothing. A rewrite may lose a line that the other one appends again next time.
    if (gone.size === 0) appendFileSync(file, text(fresh), { mode: 0o600 })
    else writeFileSync(file, text([...places].filter(place => !gone.has(place))), { mode: 0o600 })
  } catch {
    // A full disk or a read-only home: the places of this run are swept by pens that stand in the same cgroup.
  }
}
