/** The documents that a project's policy is merged from, read from disk once, with their positions. */
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { parseHttpRule, parseTcpRule } from '../policy/endpoint.ts'
import type { AllowRule } from '../policy/net-rule.ts'
import type { IsPublicSuffix } from '../policy/net-target.ts'
import type { Trust } from '../policy/path.ts'
import type { Layer, List } from '../policy/settings.ts'
import type { Parsed } from '../policy/source.ts'
import type { PositionedDocument } from '../policy/validate.ts'
import { type Entry, readAllowlist } from './allowlist.ts'
import { readJson } from './json.ts'
import type { Project } from './project.ts'
import { publicSuffixTest } from './public-suffix.ts'

const MAX_BYTES = 65_536

interface Read {
  readonly name: string
  readonly trust: Trust
  readonly document: PositionedDocument
}

export interface Layers {
  /** The user's own, weakest first: live config, the text lists beside it, the command line. */
  readonly trusted: readonly Layer[]
  /** `agent-permissions.json`: the agent can write it. */
  readonly untrusted: readonly Layer[]
}

export interface ReadOptions {
  /** What the command line says, in the shape of a config document. */
  readonly flags: object
  readonly offline: boolean
  /**
   * What a sandbox that runs was started with. The agent may have written its document since: it is not read again,
   * so that it can neither ride on an edit of the user's nor stand in its way.
   */
  readonly untrusted?: readonly Layer[]
}

export async function readLayers(
  project: Project,
  { flags, offline, untrusted }: ReadOptions,
): Promise<Layers> {
  const { world, stateDir } = project
  const live = readDocument(`${stateDir}/config.json`, 'live config', 'user')
  const http = readList(`${stateDir}/http-allowlist.txt`)
  const tcp = readList(`${stateDir}/network-allowlist.txt`)
  const said: Read | undefined =
    Object.keys(flags).length === 0
      ? undefined
      : {
          name: 'command line',
          trust: 'user',
          document: { value: flags, placeOf: nowhere, keyPlaceOf: nowhere },
        }
  const asked =
    untrusted === undefined
      ? readDocument(`${world.workspace}/agent-permissions.json`, 'agent-permissions.json', 'untrusted')
      : undefined

  const documents = [live, said, asked].filter(read => read !== undefined)
  const isPublicSuffix = await publicSuffixTest([
    ...documents.flatMap(read => hostTexts(read.document.value)),
    ...http.map(entry => entry.text),
  ])
  // The validator is loaded only when somebody said something.
  const { parseLayer } =
    documents.length === 0 ? { parseLayer: undefined } : await import('../policy/parse.ts')
  const parse = (read: Read | undefined): Layer[] =>
    read === undefined || parseLayer === undefined
      ? []
      : [parseLayer(read.document, { ...read, world, isPublicSuffix })]
  return {
    trusted: [
      ...parse(live),
      ...listLayer(http, tcp, isPublicSuffix),
      ...parse(said),
      ...(offline ? [OFFLINE] : []),
    ],
    untrusted: untrusted ?? parse(asked),
  }
}

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

const nowhere = () => undefined

/** Granting files must be the user's own; a project's document is only ever restricting, whoever wrote it. */
function readDocument(file: string, name: string, trust: Trust): Read | undefined {
  const bytes = readRegularFile(file, {
    maxBytes: MAX_BYTES,
    ...(trust === 'user' ? { owner: 'self-or-root' as const } : {}),
  })
  return bytes === undefined ? undefined : { name, trust, document: readJson(bytes, file) }
}

function readList(file: string): readonly Entry[] {
  const bytes = readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
  return bytes === undefined ? [] : readAllowlist(bytes, file)
}

/** The texts that may hold a wildcard, from a document that nobody has validated yet. */
function hostTexts(value: unknown): unknown[] {
  const network = (value as { network?: { http?: unknown; deny?: unknown } } | null)?.network
  return [network?.http, network?.deny].flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []))
}

function listLayer(http: readonly Entry[], tcp: readonly Entry[], isPublicSuffix: IsPublicSuffix): Layer[] {
  if (http.length + tcp.length === 0) return []
  const name = 'live allowlists'
  const rules = (entries: readonly Entry[], parse: (text: string) => Parsed<AllowRule>): List<AllowRule> => ({
    clear: false,
    items: entries.map(entry => ({
      rule: parsed(entry, parse(entry.text)),
      source: { layer: name, place: entry.place },
    })),
  })
  return [
    {
      name,
      trust: 'user',
      settings: {
        'network.http': rules(http, text => parseHttpRule(text, isPublicSuffix)),
        'network.tcp': rules(tcp, parseTcpRule),
      },
    },
  ]
}

function parsed(entry: Entry, rule: Parsed<AllowRule>): AllowRule {
  if (rule.ok) return rule.value
  throw new PenError('CONFIG_VALUE', {
    what: `"${printable(entry.text, 120)}": ${rule.why}`,
    at: entry.place,
    hint: rule.cure ?? 'write one "host:port" a line, a comment after " #"',
  })
}
