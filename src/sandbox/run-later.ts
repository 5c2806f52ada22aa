/** Files that the host runs when someone builds, tests or pushes, and that changed during a run: told at its end, not prevented. */
import { readdirSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { lstatOrUndefined } from './places.ts'

/** Clocks of file systems tick more coarsely than ours. */
const SLACK_MS = 20
const MAX_ENTRIES = 200

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
