/** Parses a project's documents into layers with positions. */
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import type { PathWorld, Trust } from '../policy/files/path.ts'
import { parseHttpRule, parseTcpRule } from '../policy/network/endpoint.ts'
import type { AllowRule } from '../policy/network/net-rule.ts'
import type { IsPublicSuffix } from '../policy/network/net-target.ts'
import { parseLayer } from '../policy/parse.ts'
import type { NamedDocument } from '../policy/presets.ts'
import type { Layer, List } from '../policy/settings.ts'
import type { Parsed } from '../policy/source.ts'
import type { PositionedDocument } from '../policy/validate.ts'
import { type Entry, readAllowlist } from './allowlist.ts'
import { readJson } from './json/json.ts'
import type { DocumentFile, Layers, OwnDocuments } from './layers.ts'
import { publicSuffixTest } from './public-suffix.ts'

export interface Documents extends OwnDocuments {
  /** `agent-permissions.json`. */
  readonly permissions?: DocumentFile | undefined
  /** The command line, in the shape of a config document. */
  readonly flags?: object | undefined
  readonly preset?: NamedDocument | undefined
}

interface ReadDocument {
  readonly name: string
  readonly trust: Trust
  readonly document: PositionedDocument
}

export async function parseDocuments(documents: Documents, world: PathWorld): Promise<Layers> {
  const live = readDocument(documents.live, 'live config', 'user')
  const http = readList(documents.http)
  const tcp = readList(documents.tcp)
  const flags = withoutFile('command line', documents.flags)
  const preset = withoutFile(documents.preset?.name ?? '', documents.preset?.document)
  const permissions = readDocument(documents.permissions, 'agent-permissions.json', 'untrusted')

  const all = [preset, live, flags, permissions].filter(read => read !== undefined)
  const isPublicSuffix = await publicSuffixTest([
    ...all.flatMap(read => hostTexts(read.document.value)),
    ...http.map(entry => entry.text),
  ])
  const parse = (read: ReadDocument | undefined): Layer[] =>
    read === undefined ? [] : [parseLayer(read.document, { ...read, world, isPublicSuffix })]
  return {
    trusted: [...parse(preset), ...parse(live), ...listLayer(http, tcp, isPublicSuffix), ...parse(flags)],
    untrusted: parse(permissions),
  }
}

/** A document without a file. */
const withoutFile = (name: string, value: object | undefined): ReadDocument | undefined =>
  value === undefined
    ? undefined
    : { name, trust: 'user', document: { value, placeOf: nowhere, keyPlaceOf: nowhere } }

const nowhere = () => undefined

const readDocument = (
  found: DocumentFile | undefined,
  name: string,
  trust: Trust,
): ReadDocument | undefined =>
  found === undefined ? undefined : { name, trust, document: readJson(found.bytes, found.file) }

const readList = (found: DocumentFile | undefined): readonly Entry[] =>
  found === undefined ? [] : readAllowlist(found.bytes, found.file)

/** The texts that may contain a wildcard, from a document that is not validated yet. */
function hostTexts(value: unknown): unknown[] {
  const { network, secrets } = (value ?? {}) as {
    network?: { http?: unknown; deny?: unknown }
    secrets?: unknown
  }
  const items = (list: unknown): unknown[] => (Array.isArray(list) ? list : [])
  const receivers = items(secrets).flatMap(secret => {
    const { to, from } = (secret ?? {}) as { to?: unknown; from?: { oauth?: unknown } | null }
    return [...items(to), ...items(from?.oauth)]
  })
  const hosts = items(network?.http).map(entry =>
    typeof entry === 'string' ? entry : (entry as { host?: unknown } | null)?.host,
  )
  return [...hosts, ...items(network?.deny), ...receivers]
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
    hint: rule.fix ?? 'write one "host:port" a line, a comment after " #"',
  })
}
