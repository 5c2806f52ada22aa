/** Changes to the user's live config: validated before they are written, whole or not at all, one backup kept. */
import { mkdirSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { parseLayer } from '../policy/parse.ts'
import { type JsonObject, type JsonValue, printJson, readJson } from './json.ts'
import { withLock } from './lock.ts'
import type { Project } from './project.ts'
import { publicSuffixTest } from './public-suffix.ts'

const MAX_BYTES = 65_536

export type Edit = (config: JsonObject) => JsonObject

/** Returns whether anything changed. */
export async function editLiveConfig(project: Project, edit: Edit): Promise<boolean> {
  const file = `${project.stateDir}/config.json`
  mkdirSync(project.stateDir, { recursive: true, mode: 0o700 })
  const isPublicSuffix = await publicSuffixTest(['*'])
  return await withLock(file, () => {
    const before = readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
    const document = before === undefined ? { version: 1 } : readJson(before, file).value
    const text = printJson(edit(document as JsonObject))
    if (before?.toString('utf8') === text) return false
    const check = { name: 'live config', trust: 'user' as const, world: project.world, isPublicSuffix }
    parseLayer(readJson(Buffer.from(text), file), check)
    if (before !== undefined) writeFileAtomically(`${file}.before`, before)
    writeFileAtomically(file, text)
    return true
  })
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
