/** Changes to the user's live config: validated before they are written, whole or not at all, one backup kept. */
import { mkdirSync } from 'node:fs'
import { removeLeftovers, writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { parseLayer } from '../policy/parse.ts'
import { type JsonObject, type JsonValue, printJson, readJson } from './json.ts'
import { withLock } from './lock.ts'
import type { Project } from './project.ts'
import { publicSuffixTest } from './public-suffix.ts'

const MAX_BYTES = 65_536

export type Edit = (config: JsonObject) => JsonObject

/** An editor that saves again and again: at some point the person must decide. */
const MOST_TRIES = 10

/** Returns whether anything changed. */
export async function editLiveConfig(project: Project, edit: Edit): Promise<boolean> {
  const file = `${project.stateDir}/config.json`
  makeStateDirectory(project.stateDir)
  const isPublicSuffix = await publicSuffixTest(['*'])
  return await withLock(file, () => {
    for (const path of [file, `${file}.before`]) removeLeftovers(path)
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const before = readLive(file)
      const document = before === undefined ? { version: 1 } : readJson(before, file).value
      const text = printJson(edit(document as JsonObject))
      if (before?.toString('utf8') === text) return false
      const check = { name: 'live config', trust: 'user' as const, world: project.world, isPublicSuffix }
      parseLayer(readJson(Buffer.from(text), file), check)
      if (before !== undefined) writeFileAtomically(`${file}.before`, before)
      // An editor knows nothing of the lock: what it saved meanwhile is not to be lost, but edited in turn.
      if (writeFileAtomically(file, text, { unless: () => !isSame(readLive(file), before) })) return true
    }
    throw new PenError('STATE', {
      what: 'the configuration changes faster than it can be edited',
      at: file,
      hint: 'close the program that writes it, then try again',
    })
  })
}

const readLive = (file: string): Buffer | undefined =>
  readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })

const isSame = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b)

function makeStateDirectory(dir: string): void {
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
