/** The documents that a project's policy is merged from, read from disk once. */
import { readRegularFile } from '../base/regular-file.ts'
import type { Trust } from '../policy/files/path.ts'
import type { NamedDocument } from '../policy/preset-layer.ts'
import type { Layer } from '../policy/settings.ts'
import { grantFiles } from './grants/grant-files.ts'
import type { GrantView } from './grants/grant-layer.ts'
import type { Project } from './project.ts'

const MAX_BYTES = 65_536

/** A document as it was found: nobody has looked at what it says. */
export interface DocumentFile {
  readonly file: string
  readonly bytes: Buffer
}

export interface Layers {
  /** The user's own, weakest first: a preset, live config, the text lists beside it, the command line. */
  readonly trusted: readonly Layer[]
  /** `agent-permissions.json`: the agent can write it. */
  readonly untrusted: readonly Layer[]
}

export interface ReadOptions {
  /** What the command line says, in the shape of a config document. */
  readonly flags: object
  readonly offline: boolean
  /** What the person chose by its name. Weaker than their own documents, so that those have the last word. */
  readonly preset?: NamedDocument | undefined
  /**
   * What a sandbox that runs was started with. The agent may have written its document since: it is not read again,
   * so that it can neither ride on an edit of the user's nor stand in its way.
   */
  readonly untrusted?: readonly Layer[]
  /** Which temporary grants count; without it, those of no run. */
  readonly grants?: GrantView
}

export async function readLayers(
  project: Project,
  { flags, offline, preset, untrusted, grants = 'start' }: ReadOptions,
): Promise<Layers> {
  const { world } = project
  const { live, http, tcp } = findLive(project)
  const asked =
    untrusted === undefined ? find(`${world.workspace}/agent-permissions.json`, 'untrusted') : undefined
  const said = Object.keys(flags).length === 0 ? undefined : flags
  const last = [...(await temporary(project.stateDir, grants)), ...(offline ? [OFFLINE] : [])]
  if ([live, http, tcp, asked, said, preset].every(document => document === undefined))
    return { trusted: last, untrusted: untrusted ?? [] }
  // What understands documents is loaded only when somebody said something.
  const { parseDocuments } = await import('./documents.ts')
  const layers = await parseDocuments({ live, http, tcp, asked, said, preset }, world)
  return { trusted: [...layers.trusted, ...last], untrusted: untrusted ?? layers.untrusted }
}

const temporary = async (stateDir: string, view: GrantView): Promise<Layer[]> =>
  grantFiles(stateDir).length === 0
    ? []
    : await (await import('./grants/grant-layer.ts')).grantLayer(stateDir, view)

/** The user's own documents: what is in force when a sandbox starts. */
export const findLive = ({ stateDir }: Project) => ({
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

/** Granting files must be the user's own; a project's document is only ever restricting, whoever wrote it. */
function find(file: string, trust: Trust): DocumentFile | undefined {
  const bytes = readRegularFile(file, {
    maxBytes: MAX_BYTES,
    ...(trust === 'user' ? { owner: 'self-or-root' as const } : {}),
  })
  return bytes === undefined ? undefined : { file, bytes }
}
