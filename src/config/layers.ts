/** The documents that a project's policy is merged from, read from disk once. */
import { readRegularFile } from '../base/regular-file.ts'
import type { Trust } from '../policy/files/path.ts'
import type { Layer } from '../policy/settings.ts'
import { grantFiles } from './grants/grant-files.ts'
import type { GrantView } from './grants/grant-layer.ts'
import type { LoadOptions } from './load.ts'
import type { Project } from './project.ts'

const MAX_BYTES = 65_536

/** A document's file and bytes, not yet parsed. */
export interface DocumentFile {
  readonly file: string
  readonly bytes: Buffer
}

export interface Layers {
  /** The user's layers, weakest first: a preset, live config, its text lists, the command line. */
  readonly trusted: readonly Layer[]
  /** `agent-permissions.json`, which the agent can write. */
  readonly untrusted: readonly Layer[]
}

/** The user's live config and its text lists. */
export interface OwnDocuments {
  readonly live: DocumentFile | undefined
  readonly http: DocumentFile | undefined
  readonly tcp: DocumentFile | undefined
}

export async function readLayers(
  project: Project,
  { flags, offline, preset, untrusted, grants = 'start' }: Omit<LoadOptions, 'allowUserExpansion'>,
): Promise<Layers> {
  const { world } = project
  const { live, http, tcp } = findLive(project)
  const permissions =
    untrusted === undefined ? find(`${world.workspace}/agent-permissions.json`, 'untrusted') : undefined
  const given = Object.keys(flags).length === 0 ? undefined : flags
  const last = [...(await temporary(project.shared.stateDir, grants)), ...(offline ? [OFFLINE] : [])]
  if ([live, http, tcp, permissions, given, preset].every(document => document === undefined))
    return { trusted: last, untrusted: untrusted ?? [] }
  // The parser is loaded only when a document or flag exists.
  const { parseDocuments } = await import('./documents.ts')
  const layers = await parseDocuments({ live, http, tcp, permissions, flags: given, preset }, world)
  return { trusted: [...layers.trusted, ...last], untrusted: untrusted ?? layers.untrusted }
}

const temporary = async (stateDir: string, view: GrantView): Promise<Layer[]> =>
  grantFiles(stateDir).length === 0
    ? []
    : await (await import('./grants/grant-layer.ts')).grantLayer(stateDir, view)

/** The documents that are in force when a sandbox starts. */
export const findLive = ({ shared: { stateDir } }: Project): OwnDocuments => ({
  live: find(`${stateDir}/config.json`, 'user'),
  http: find(`${stateDir}/http-allowlist.txt`, 'user'),
  tcp: find(`${stateDir}/network-allowlist.txt`, 'user'),
})

const OFFLINE: Layer = {
  name: 'command line',
  trust: 'user',
  settings: {
    'network.offline': {
      value: true,
      source: { layer: 'command line', place: undefined, note: '--offline' },
    },
  },
}

/** A granting file must belong to the user or root. A project's document only restricts, so its owner does not matter. */
function find(file: string, trust: Trust): DocumentFile | undefined {
  const bytes = readRegularFile(file, {
    maxBytes: MAX_BYTES,
    ...(trust === 'user' ? { owner: 'self-or-root' as const } : {}),
  })
  return bytes === undefined ? undefined : { file, bytes }
}
