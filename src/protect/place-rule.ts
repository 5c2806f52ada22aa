/** Whether an entry may stay at a watched place. Judges the current content; the caller asks again after each change. */
import { closeSync, readlinkSync } from 'node:fs'
import { at, LIST, openDirectory, type Spot, withAccess } from '../base/beneath/beneath.ts'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import { errnoOf } from '../base/error.ts'
import { whileUnwritten } from '../base/kernel/read-lease.ts'
import { dirname } from '../base/posix-path.ts'
import { riskySettings } from '../survey/git/config.ts'
import { readGitConfig, readGitFile } from '../survey/git/directory.ts'
import { isWithoutGitlinks } from '../survey/git/gitlinks.ts'
import type { PlaceRule } from '../survey/places.ts'

/** git ships 14 samples. A directory with many more is not git's, and is not listed completely. */
const MAX_SAMPLES = 64

/** A sandbox could change a file between two looks. git never writes these in place, so a writer is not git. */
export function isAllowed(rule: PlaceRule, spot: Spot, path: string): boolean {
  if (!isJudged(rule) || !spot.stats.isFile()) return mayStay(rule, spot, path)
  try {
    return whileUnwritten(at(spot.parent, spot.name).toString(), () => mayStay(rule, spot, path))
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

/** Whether the content of a file decides. */
export const isJudged = ({ kind }: PlaceRule): boolean =>
  kind === 'git-config' || kind === 'git-index' || kind === 'git-pointer'

function mayStay(rule: PlaceRule, { parent, name, stats }: Spot, path: string): boolean {
  const here = at(parent, name).toString()
  switch (rule.kind) {
    case 'nothing':
      return false
    case 'no-link':
      return !stats.isSymbolicLink()
    case 'git-dir':
      return stats.isDirectory()
    case 'git-config': {
      const settings = stats.isFile() ? readGitConfig(here) : undefined
      return settings !== undefined && riskySettings(settings).every(s => rule.known.includes(s))
    }
    case 'git-hooks':
      return stats.isDirectory() && onlySamples(here)
    case 'git-index':
      return stats.isFile() && isWithoutGitlinks(here, idBytes(at(parent, 'config').toString()))
    case 'git-pointer':
      return stats.isFile() && readGitFile(here, dirname(path)) === rule.to
    case 'link':
      return stats.isSymbolicLink() && readsAs(here, rule.text)
  }
}

function idBytes(config: string): number {
  const settings = readGitConfig(config) ?? []
  const format = settings.findLast(({ key }) => key === 'extensions.objectformat')
  return format?.value === 'sha256' ? 32 : 20
}

function onlySamples(path: string): boolean {
  const dir = openDirectory(path)
  if (dir === undefined) return false
  try {
    return withAccess(dir, LIST, () => {
      let count = 0
      for (const { name } of directoryEntries(dir))
        if (++count > MAX_SAMPLES || !name.toString().endsWith('.sample')) return false
      return true
    })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  } finally {
    closeSync(dir)
  }
}

function readsAs(link: string, text: string): boolean {
  try {
    return readlinkSync(link) === text
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
