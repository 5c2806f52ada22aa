/** Files that the host runs when someone builds, tests or pushes, and that changed during a run: told at its end, not prevented. */
import { readdirSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { lstatOrUndefined } from './places.ts'

/** Clocks of file systems tick more coarsely than ours. */
const SLACK_MS = 20
const MAX_ENTRIES = 200

const MAX_TOLD = 10

/** One line for a person; none when nothing changed. */
export function describeRunLater(changed: readonly string[]): string[] {
  if (changed.length === 0) return []
  const shown = changed.slice(0, MAX_TOLD).map(name => printable(name, 120))
  const more = changed.length > MAX_TOLD ? ` and ${changed.length - MAX_TOLD} more` : ''
  return [
    `changed during the run, and run by your machine when you build, test or push: ${shown.join(', ')}${more}; read the difference first`,
  ]
}

/** `names` are relative to the workspace. By change time, which a sandbox cannot set; a directory counts with its direct entries. */
export function changedSince(workspace: string, names: readonly string[], since: number): readonly string[] {
  return names.flatMap(name => {
    const stats = lstatOrUndefined(`${workspace}/${name}`)
    if (stats === undefined) return []
    if (stats.isDirectory())
      return entries(`${workspace}/${name}`)
        .map(entry => `${name}/${entry}`)
        .filter(path => isNew(`${workspace}/${path}`, since))
    return isNew(`${workspace}/${name}`, since) ? [name] : []
  })
}

function isNew(path: string, since: number): boolean {
  const stats = lstatOrUndefined(path)
  return stats !== undefined && Number(stats.ctimeNs / 1_000_000n) >= since - SLACK_MS
}

function entries(dir: string): readonly string[] {
  try {
    return readdirSync(dir).slice(0, MAX_ENTRIES)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return []
  }
}
