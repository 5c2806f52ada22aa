/** The project's `.pen/` beside the live config: what would change, and the very bytes that would take effect. */
import { PenError } from '../base/error.ts'
import { sha256 } from '../base/sha256.ts'
import { compile } from '../policy/compile.ts'
import { comparePolicies, type Difference } from '../policy/diff/difference.ts'
import { mergeLayers } from '../policy/merge.ts'
import type { Policy } from '../policy/policy.ts'
import type { Layer, ProfileName } from '../policy/settings.ts'
import { PROFILE_NAMES } from '../policy/vocabulary.ts'
import { readAllowlist } from './allowlist.ts'
import { parseDocuments } from './documents.ts'
import { foldLists, liveConfig, rewriteLiveConfig, sameBytes } from './edit.ts'
import { type JsonObject, printJson, readJson } from './json/json.ts'
import { type DocumentFile, findLive } from './layers.ts'
import { baseLayers, groupRules } from './load.ts'
import { PenDirectory } from './pen-directory.ts'
import type { Project } from './project.ts'

export interface Proposal {
  readonly differences: readonly Difference[]
  /** Widenings that show only when the command line names this profile. */
  readonly elsewhere: readonly { readonly profile: ProfileName; readonly difference: Difference }[]
  /** Of all bytes on both sides: when it is the same, so is everything that was shown. */
  readonly digest: string
  /** What the live config was, and what it would be. */
  readonly before: Buffer | undefined
  readonly after: Buffer
}

interface Documents {
  readonly live: DocumentFile | undefined
  readonly http: DocumentFile | undefined
  readonly tcp: DocumentFile | undefined
}

/** Reads each file once; whatever is done with the proposal is done with what was read here. */
export async function readProposal(project: Project): Promise<Proposal> {
  const live = findLive(project)
  const proposed = readProject(project)
  // First as it stands, so that a mistake is told by its own file and line.
  await parseDocuments({ ...proposed, ...NO_OTHERS }, project.world)
  const after = foldedBytes(proposed)
  const isVerbatim = proposed.live?.bytes.equals(after) === true
  const next = { file: isVerbatim ? (proposed.live?.file ?? '') : liveConfig(project), bytes: after }
  const [before, then] = await Promise.all([
    policiesOf(live, project),
    // The user's own text lists stay beside it.
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

/** Puts in force what was shown, and nothing else: neither what is in the project by now nor over an edit made meanwhile. */
export const applyProposal = (project: Project, { before, after }: Proposal): Promise<boolean> =>
  rewriteLiveConfig(project, now => {
    if (sameBytes(now, before)) return after
    throw new PenError('STATE', {
      what: 'the live config was changed while you were looking: nothing was applied',
      at: liveConfig(project),
      hint: 'look again with pen config diff',
    })
  })

const NO_OTHERS = { asked: undefined, said: undefined }

const nameOf = ({ key, change, item }: Difference): string => JSON.stringify([key, change, item])

function readProject({ world }: Project): Documents {
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
    hint: 'pen init writes a first one, pen config backup the one that is in force; or cd to the directory that has it',
  })
}

/** As they stand where there is a document alone; else one document, so that one step puts all of it in force. */
export function foldedBytes({ live, http, tcp }: Documents): Buffer {
  const entries = (found: DocumentFile | undefined) =>
    found === undefined ? [] : readAllowlist(found.bytes, found.file).map(({ text }) => text)
  const lists = { http: entries(http), tcp: entries(tcp) }
  if (live !== undefined && lists.http.length + lists.tcp.length === 0) return live.bytes
  const document = live === undefined ? { version: 1 } : readJson(live.bytes, live.file).value
  return Buffer.from(printJson(foldLists(document as JsonObject, lists), {}, live?.bytes))
}

interface Policies {
  readonly own: Policy
  /** As it would be with `--profile` on the command line. */
  on(profile: ProfileName): Policy
}

/** The user's own layers alone: a project's other documents only take away, whatever these say. */
async function policiesOf(documents: Documents, project: Project): Promise<Policies> {
  const { world } = project
  const { trusted } = await parseDocuments({ ...documents, ...NO_OTHERS }, world)
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
      const flag: Layer = {
        name: source.layer,
        trust: 'user',
        settings: { profile: { value, source } },
      }
      return compile(merge([flag]), world.workspace, rules)
    },
  }
}

function digestOf(...sides: readonly Documents[]): string {
  const texts = sides.map(({ live, http, tcp }) =>
    [live, http, tcp].map(found => found?.bytes.toString('base64') ?? null),
  )
  return `sha256:${sha256(JSON.stringify(texts))}`
}
