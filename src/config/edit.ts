/** Edits the live config: validated before the write, written atomically, with one backup. */
import { removeLeftovers, writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { parseLayer } from '../policy/parse.ts'
import { type JsonObject, type JsonValue, printJson, readJson } from './json/json.ts'
import { MAX_BYTES } from './json/source-text.ts'
import { withLock } from './lock.ts'
import { makeStateDirectory, type Project } from './project.ts'
import { publicSuffixTest } from './public-suffix.ts'

export type Edit = (config: JsonObject) => JsonObject

/** Stop after this many retries, when another program keeps saving the file. */
const MOST_TRIES = 10

/** Returns whether anything changed. */
export const editLiveConfig = (project: Project, edit: Edit): Promise<boolean> =>
  rewriteLiveConfig(project, before => {
    const document = before === undefined ? { version: 1 } : readJson(before, liveConfig(project)).value
    const edited = edit(document as JsonObject)
    return before !== undefined && edited === document ? before : printJson(edited, { like: before })
  })

export const liveConfig = (project: Project): string => `${project.shared.stateDir}/config.json`

/**
 * Replaces the live config with the result of `make`, if that is valid. `make` is called again when an editor saves in
 * between. If it throws, nothing changes. Returns whether anything changed.
 */
export async function rewriteLiveConfig(
  project: Project,
  make: (before: Buffer | undefined) => Buffer | string,
): Promise<boolean> {
  const file = liveConfig(project)
  const isPublicSuffix = await publicSuffixTest(['*'])
  return await whileLocked(project, () => {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const before = readLive(file)
      const bytes = Buffer.from(make(before))
      if (before?.equals(bytes) === true) return false
      const check = { name: 'live config', trust: 'user' as const, world: project.world, isPublicSuffix }
      parseLayer(readJson(bytes, file), check)
      if (before !== undefined) writeFileAtomically(`${file}.before`, before)
      // An editor does not use the lock. Retry if it saved in between, so that its change is not lost.
      if (writeFileAtomically(file, bytes, { unless: () => !sameBytes(readLive(file), before) })) return true
    }
    throw new PenError('STATE', {
      what: 'another program keeps changing the live config',
      at: file,
      hint: 'close the program that writes it, then try again',
    })
  })
}

/** Runs `work` while no other pen writes this project's live config or its `.pen/`. */
export async function whileLocked<T>(project: Project, work: () => T): Promise<T> {
  const file = liveConfig(project)
  makeStateDirectory(project.shared.stateDir)
  return await withLock(file, () => {
    for (const path of [file, `${file}.before`]) removeLeftovers(path)
    return work()
  })
}

export const readLive = (file: string): Buffer | undefined =>
  readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })

export const sameBytes = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b)

/** Adds the entries that are missing to the lists of `network`. */
export function addToLists(
  config: JsonObject,
  lists: Readonly<Record<string, readonly string[]>>,
): JsonObject {
  return Object.entries(lists).reduce(
    (edited, [key, entries]) =>
      editNetworkList(edited, key, list => {
        const added = [...new Set(entries)].filter(text => !list.includes(text))
        return added.length === 0 ? list : [...list, ...added]
      }),
    config,
  )
}

/** Changes the list at `network.<key>`. An empty list is dropped, because `[]` would mean "remove all". */
export function editNetworkList(
  config: JsonObject,
  key: string,
  change: (list: readonly string[]) => readonly string[],
): JsonObject {
  const network = (config['network'] ?? {}) as JsonObject
  const list = (network[key] ?? []) as readonly string[]
  const changed = change(list)
  if (changed === list) return config
  const { [key]: _gone, ...others } = network
  const kept: Record<string, JsonValue> = changed.length === 0 ? others : { ...network, [key]: changed }
  return { ...config, network: kept }
}
