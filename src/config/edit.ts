/** Changes to the user's live config: validated before they are written, whole or not at all, one backup kept. */
import { mkdirSync } from 'node:fs'
import { removeLeftovers, writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { parseLayer } from '../policy/parse.ts'
import { type JsonObject, type JsonValue, printJson, readJson } from './json/json.ts'
import { withLock } from './lock.ts'
import type { Project } from './project.ts'
import { publicSuffixTest } from './public-suffix.ts'

const MAX_BYTES = 65_536

export type Edit = (config: JsonObject) => JsonObject

/** An editor that saves again and again: at some point the person must decide. */
const MOST_TRIES = 10

/** Returns whether anything changed. */
export const editLiveConfig = (project: Project, edit: Edit): Promise<boolean> =>
  rewriteLiveConfig(project, before => {
    const document = before === undefined ? { version: 1 } : readJson(before, liveConfig(project)).value
    const edited = edit(document as JsonObject)
    return before !== undefined && edited === document ? before : printJson(edited, {}, before)
  })

export const liveConfig = (project: Project): string => `${project.stateDir}/config.json`

/**
 * What `make` says takes the place of the live config, if it is one. `make` may be asked again, when an editor has saved
 * meanwhile, and may throw: then everything stays as it is. Returns whether anything changed.
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
      // An editor knows nothing of the lock: what it saved meanwhile is not to be lost, but edited in turn.
      if (writeFileAtomically(file, bytes, { unless: () => !sameBytes(readLive(file), before) })) return true
    }
    throw new PenError('STATE', {
      what: 'the configuration changes faster than it can be edited',
      at: file,
      hint: 'close the program that writes it, then try again',
    })
  })
}

/** While no other pen writes the configuration of this project: the live one, or its `.pen/`. */
export async function whileLocked<T>(project: Project, work: () => T): Promise<T> {
  const file = liveConfig(project)
  makeStateDirectory(project.stateDir)
  return await withLock(file, () => {
    for (const path of [file, `${file}.before`]) removeLeftovers(path)
    return work()
  })
}

export const readLive = (file: string): Buffer | undefined =>
  readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })

export const sameBytes = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b)

export function makeStateDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new PenError('STATE', {
      what: `the directory of the configuration could not be made (${errnoOf(error) ?? 'unknown error'})`,
      at: dir,
      hint: 'check that it is yours to write and that the disk is not full',
      cause: error,
    })
  }
}

/** The entries of text lists as what they mean: a part of the document beside them. */
export function foldLists(
  config: JsonObject,
  lists: { readonly http: readonly string[]; readonly tcp: readonly string[] },
): JsonObject {
  return (['http', 'tcp'] as const).reduce(
    (folded, key) =>
      editNetworkList(folded, key, list => {
        const added = [...new Set(lists[key])].filter(text => !list.includes(text))
        return added.length === 0 ? list : [...list, ...added]
      }),
    config,
  )
}

/** The list at `network.<key>` with `change` applied; an emptied list is left out, because `[]` would say "remove all". */
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
