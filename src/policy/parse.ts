/**
 * Parses a validated document into a layer. Every text becomes a checked value, or is refused with its place and a fix.
 * One bad entry refuses the whole document. Nothing falls back to a default.
 */
import { PenError, type Place } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { parseBytes, parseMillis } from '../base/quantity.ts'
import * as entries from './entries.ts'
import { absolute, isWithin, type PathWorld, type Trust, tryLocate } from './files/path.ts'
import { type IsPublicSuffix, parseDenyRule, parseTcpRule } from './network/endpoint.ts'
import { hostEntry } from './network/unopened.ts'
import type { ConfigDocument } from './schema.ts'
import { secretEntry } from './secret-entry.ts'
import type { EnvValue, Layer, List, SettingKey, Settings } from './settings.ts'
import { type Parsed, type Refusal, refuse, type Setting, type Source } from './source.ts'
import { type DocumentPath, mayHoldSecret, type PositionedDocument, validateDocument } from './validate.ts'

interface LayerContext {
  readonly name: string
  readonly trust: Trust
  readonly world: PathWorld
  /** Injected, so that the list of public suffixes is loaded only for a wildcard. */
  readonly isPublicSuffix: IsPublicSuffix
}

export function parseLayer(document: PositionedDocument, context: LayerContext): Layer {
  const config = validateDocument(document, context.name)
  const part = new Part(document, context)
  const found: Partial<Record<SettingKey, unknown>> = {}
  for (const key of Object.keys(READERS) as SettingKey[]) {
    const path = key.split('.')
    const said = path.reduce<unknown>(
      (at, name) => (at as Record<string, unknown> | undefined)?.[name],
      config,
    )
    if (said !== undefined) found[key] = READERS[key](said as never, part.at(...path))
  }
  const settings = found as Settings
  checkNested(config, settings, part, context.world)
  return { name: context.name, trust: context.trust, settings }
}

/** A part of the document. It is the source of what it sets. The line is computed when asked for, which is rare. */
class Part implements Source {
  readonly layer: string
  readonly #document: PositionedDocument
  readonly #context: LayerContext
  readonly #path: DocumentPath

  constructor(document: PositionedDocument, context: LayerContext, path: DocumentPath = []) {
    this.layer = context.name
    this.#document = document
    this.#context = context
    this.#path = path
  }

  get place(): Place | undefined {
    return this.#document.placeOf(this.#path)
  }

  at(...below: DocumentPath): Part {
    return new Part(this.#document, this.#context, [...this.#path, ...below])
  }

  accept<I, T>(said: I, parse: (said: I, context: LayerContext) => Parsed<T>): T {
    const parsed = parse(said, this.#context)
    return parsed.ok ? parsed.value : this.refuse(said, parsed)
  }

  refuse(said: unknown, { why, fix }: Refusal, place = this.place): never {
    const shown = typeof said === 'string' && !mayHoldSecret(this.#path) ? ` "${printable(said, 120)}"` : ''
    throw new PenError('CONFIG_VALUE', {
      what: `${this.#path.filter(key => typeof key === 'string').join('.')}${shown}: ${why}`,
      at: place ?? this.layer,
      hint: fix ?? 'see docs/reference/config.md',
    })
  }
}

/** The type of a setting in the document. */
type Said<K extends string, D = ConfigDocument> = K extends `${infer Section}.${infer Name}`
  ? Said<Name, NonNullable<D[Section & keyof D]>>
  : NonNullable<D[K & keyof D]> | Extract<D[K & keyof D], null>

type Reader<I, T> = (said: I, part: Part) => T

const asWritten = <T>(value: T, source: Part): Setting<T> => ({ value, source })

const value =
  <I, T>(parse: (said: I, context: LayerContext) => Parsed<T>): Reader<I, Setting<T>> =>
  (said, source) => ({ value: source.accept(said, parse), source })

const quantity =
  <T>(parse: (text: string, at: Place | string) => T): Reader<string, Setting<T>> =>
  (said, source) => ({ value: parse(said, source.place ?? source.layer), source })

const list =
  <I, T>(parse: (said: I, context: LayerContext) => Parsed<T>): Reader<readonly I[], List<T>> =>
  (said, part) => ({
    clear: said.length === 0,
    items: said.map((entry, i) => {
      const source = part.at(i)
      return { rule: source.accept(entry, parse), source }
    }),
  })

const bytes = quantity(parseBytes)
const millis = quantity(parseMillis)

const READERS: { readonly [K in SettingKey]-?: Reader<Said<K>, Settings[K]> } = {
  profile: asWritten,
  isolation: asWritten,
  backend: asWritten,
  workspace: asWritten,
  'files.read': list(entries.pathGrant),
  'files.write': list(entries.pathGrant),
  'files.deny': list(entries.fileDenial),
  'files.protect': list(entries.protectedPlace),
  'network.http': list(hostEntry),
  'network.tcp': list(parseTcpRule),
  'network.groups': list(entries.group),
  'network.deny': list((text, { isPublicSuffix }) => parseDenyRule(text, isPublicSuffix)),
  'network.ask': asWritten,
  'network.mode': asWritten,
  'network.upstreamProxy': value(entries.proxy),
  'network.hold': millis,
  'network.idle': millis,
  'network.offline': asWritten,
  'exec.timeout': millis,
  'exec.ceiling': millis,
  'exec.maxOutput': bytes,
  'limits.cpus': value(entries.number('cpus', 0.01, 4096, false)),
  'limits.memory': bytes,
  'limits.pids': value(entries.number('pids', 1, 4_194_304, true)),
  'limits.wall': millis,
  'limits.disk': bytes,
  'limits.output': bytes,
  'limits.files': value(entries.number('files', 16, 1_048_576, true)),
  env: (said, part) =>
    new Map(Object.entries(said).map(([name, value]) => [name, variable(name, value, part)])),
  mounts: list(entries.mount),
  image: value(entries.image),
  'tools.shell': asWritten,
  'tools.allow': list(entries.tool),
  'tools.exec': asWritten,
  user: value(entries.user),
  runtime: value(entries.runtime),
  'git.identity': asWritten,
  'vm.root': asWritten,
  'ssh.agent.keys': list(entries.fingerprint),
  'ssh.agent.hosts': list(entries.agentHost),
  'ssh.agent.sign': list(entries.signaturePurpose),
  acceptGaps: list(entries.gapName),
  ports: list(entries.forward),
  secrets: list(secretEntry),
}

function variable(name: string, said: Said<'env'>[string], env: Part): Setting<EnvValue> {
  const source = env.at(name)
  const parsed = entries.envEntry(name, typeof said === 'string' ? said : undefined)
  if (!parsed.ok)
    env.refuse(undefined, { ...parsed, why: `${printable(name, 80)}: ${parsed.why}` }, source.place)
  return { value: parsed.value, source }
}

/**
 * A sandbox can replace anything in a writable place with a link, and the next run would follow it. So a path written inside
 * a place that this layer makes writable must not resolve to a path outside it.
 */
function checkNested(
  { files = {}, mounts = [] }: ConfigDocument,
  said: Settings,
  document: Part,
  world: PathWorld,
): void {
  const writable = [
    ...(said['files.write']?.items ?? []).map(({ rule }) => rule.path as string),
    ...(said.mounts?.items ?? []).flatMap(({ rule }) =>
      rule.kind === 'host' && rule.mode === 'rw' ? [rule.host as string] : [],
    ),
  ]
  if (writable.length === 0) return
  const check = (part: Part, text: string): void => {
    const written = absolute(text, world)
    if (!written.ok || !writable.some(place => place !== written.value && isWithin(written.value, place)))
      return
    const real = tryLocate(written.value, world)
    if (!real.ok) return
    for (const place of writable)
      if (isWithin(written.value, place) && !isWithin(real.value.real, place))
        part.refuse(
          text,
          refuse(
            `the path is a link out of ${place}, which the sandbox may write, to ${real.value.real}`,
            'name its target',
          ),
        )
  }
  for (const key of ['read', 'write'] as const)
    for (const [i, text] of (files[key] ?? []).entries()) check(document.at('files', key, i), text)
  for (const [i, mount] of mounts.entries()) if ('host' in mount) check(document.at('mounts', i), mount.host)
}
