/** Compares the project's `.pen/` with the live config: the differences, and the exact bytes that would take effect. */
import { PenError } from '../base/error.ts'
import { sha256 } from '../base/sha256.ts'
import { compile } from '../policy/compile.ts'
import { comparePolicies, type Difference } from '../policy/diff/difference.ts'
import { mergeLayers } from '../policy/merge.ts'
import type { Policy } from '../policy/policy.ts'
import { type Layer, PROFILE_NAMES, type ProfileName } from '../policy/settings.ts'
import { readAllowlist } from './allowlist.ts'
import { parseDocuments } from './documents.ts'
import { addToLists, liveConfig, rewriteLiveConfig, sameBytes } from './edit.ts'
import { type JsonObject, type JsonValue, printJson, readJson } from './json/json.ts'
import { type DocumentFile, findLive, type OwnDocuments } from './layers.ts'
import { baseLayers, groupRules } from './load.ts'
import { PenDirectory } from './pen-directory.ts'
import type { Project } from './project.ts'

export interface Proposal {
  readonly differences: readonly Difference[]
  /** Widenings that appear only with this profile on the command line. */
  readonly elsewhere: readonly { readonly profile: ProfileName; readonly difference: Difference }[]
  /** A digest of all bytes on both sides. The same digest means that the same differences were shown. */
  readonly digest: string
  /** The live config before and after. */
  readonly before: Buffer | undefined
  readonly after: Buffer
}

/** Reads each file once. Applying the proposal uses these bytes. */
export async function readProposal(project: Project): Promise<Proposal> {
  const live = findLive(project)
  const proposed = readProject(project)
  // Parse the files as they are first, so that an error names its own file and line.
  await parseDocuments(proposed, project.world)
  refuseSecrets(proposed.live)
  const after = withSecrets(foldedBytes(proposed), live.live)
  const isVerbatim = proposed.live?.bytes.equals(after) === true
  const next = { file: isVerbatim ? (proposed.live?.file ?? '') : liveConfig(project), bytes: after }
  const [before, then] = await Promise.all([
    policiesOf(live, project),
    // The user's own text lists stay in force.
    policiesOf({ ...live, live: next }, project),
  ])
  const differences = comparePolicies(before.own, then.own)
  const known = new Set(differences.filter(({ widens }) => widens).map(nameOf))
  const elsewhere = PROFILE_NAMES.flatMap(profile =>
    comparePolicies(before.on(profile), then.on(profile))
      .filter(difference => difference.widens && !known.has(nameOf(difference)))
      .map(difference => ({ profile, difference })),
  )
  return { differences, elsewhere, digest: digestOf(live, proposed), before: live.live?.bytes, after }
}

/** Applies exactly the reviewed bytes. Fails if the live config changed since; later changes in the project are ignored. */
export const applyProposal = (project: Project, { before, after }: Proposal): Promise<boolean> =>
  rewriteLiveConfig(project, now => {
    if (sameBytes(now, before)) return after
    throw new PenError('STATE', {
      what: 'the live config was changed during your review: nothing was applied',
      at: liveConfig(project),
      hint: 'review again: pen config diff',
    })
  })

const nameOf = ({ key, change, item }: Difference): string => JSON.stringify([key, change, item])

function readProject({ world }: Project): OwnDocuments {
  const path = `${world.workspace}/.pen`
  using directory = PenDirectory.open(world.workspace)
  const documents = {
    live: directory?.read('config.json'),
    http: directory?.read('http-allowlist.txt'),
    tcp: directory?.read('network-allowlist.txt'),
  }
  if (Object.values(documents).some(found => found !== undefined)) return documents
  throw new PenError('CONFIG_FILE', {
    what: `there is no configuration in ${path}`,
    at: path,
    hint: 'write one: pen init; or copy the live one: pen config backup; or cd to the directory that has it',
  })
}

/** The bytes of the document if it stands alone. With text lists, one merged document, so that one write applies all. */
export function foldedBytes({ live, http, tcp }: OwnDocuments): Buffer {
  const entries = (found: DocumentFile | undefined) =>
    found === undefined ? [] : readAllowlist(found.bytes, found.file).map(({ text }) => text)
  const lists = { http: entries(http), tcp: entries(tcp) }
  if (live !== undefined && lists.http.length + lists.tcp.length === 0) return live.bytes
  const document = live === undefined ? { version: 1 } : readJson(live.bytes, live.file).value
  return Buffer.from(printJson(addToLists(document as JsonObject, lists), { like: live?.bytes }))
}

/** Secrets are the user's alone: who writes the project must not choose a command of the host, or a host for a token. */
function refuseSecrets(found: DocumentFile | undefined): void {
  if (found === undefined || secretsOf(found) === undefined) return
  throw new PenError('CONFIG_VALUE', {
    what: 'a project’s document has no secrets',
    at: found.file,
    hint: 'take "secrets" out of it, and add them to the live config: pen secret add',
  })
}

const secretsOf = ({ bytes, file }: DocumentFile): JsonValue | undefined =>
  (readJson(bytes, file).value as JsonObject)['secrets']

/** The live config keeps its secrets when the rest is replaced. */
function withSecrets(bytes: Buffer, live: DocumentFile | undefined): Buffer {
  const secrets = live === undefined ? undefined : secretsOf(live)
  if (secrets === undefined) return bytes
  const document = readJson(bytes, 'live config').value as JsonObject
  return Buffer.from(printJson({ ...document, secrets }, { like: bytes }))
}

/** The same bytes if there are none. */
export function withoutSecrets(bytes: Buffer): Buffer {
  const { secrets, ...document } = readJson(bytes, 'live config').value as JsonObject
  return secrets === undefined ? bytes : Buffer.from(printJson(document, { like: bytes }))
}

interface Policies {
  readonly own: Policy
  /** The policy with `--profile` on the command line. */
  on(profile: ProfileName): Policy
}

/** Uses only the user's own layers, because the project's other documents can only restrict. */
async function policiesOf(documents: OwnDocuments, project: Project): Promise<Policies> {
  const { world } = project
  const { trusted } = await parseDocuments(documents, world)
  const { base } = baseLayers(world, { trusted, untrusted: [] })
  const merge = (more: readonly Layer[]) =>
    mergeLayers({
      base,
      trusted: [...trusted, ...more],
      untrusted: [],
      workspace: world.workspace,
      allowUserExpansion: false,
    }).settings
  const own = merge([])
  const rules = await groupRules(own, project)
  return {
    own: compile(own, world.workspace, rules),
    on: value => {
      const source = { layer: 'command line', place: undefined }
      const flag = { name: source.layer, trust: 'user', settings: { profile: { value, source } } } as const
      return compile(merge([flag]), world.workspace, rules)
    },
  }
}

function digestOf(...sides: readonly OwnDocuments[]): string {
  const texts = sides.map(({ live, http, tcp }) =>
    [live, http, tcp].map(found => found?.bytes.toString('base64') ?? null),
  )
  return `sha256:${sha256(JSON.stringify(texts))}`
}
