/**
 * Parses a validated document into a layer. Every text becomes a checked value, or is refused with its place and a fix.
 * One bad entry refuses the whole document. Nothing falls back to a default.
 */
import { PenError, type Place } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { parseBytes, parseMillis } from '../base/quantity.ts'
import {
  envEntry,
  fingerprint,
  forward,
  gapName,
  group,
  image,
  number,
  proxy,
  runtime,
  tool,
  user,
} from './entries.ts'
import { parseGlob } from './files/glob.ts'
import {
  absolute,
  canonicalize,
  checkMountSource,
  depth,
  guest,
  isWithin,
  type PathWorld,
  type Trust,
  tryLocate,
} from './files/path.ts'
import { type IsPublicSuffix, parseDenyRule, parseHttpRule, parseTcpRule } from './network/endpoint.ts'
import type { AllowRule } from './network/net-rule.ts'
import type { ConfigDocument } from './schema.ts'
import type {
  EnvValue,
  FileDenyRule,
  Layer,
  List,
  Mount,
  PathGrant,
  ProtectRule,
  Settings,
} from './settings.ts'
import type { Parsed, Setting, Source } from './source.ts'
import { type DocumentPath, mayHoldSecret, type PositionedDocument, validateDocument } from './validate.ts'

interface LayerContext {
  readonly name: string
  readonly trust: Trust
  readonly world: PathWorld
  /** Injected, so that the list of public suffixes is loaded only for a wildcard. */
  readonly isPublicSuffix: IsPublicSuffix
}

export function parseLayer(document: PositionedDocument, context: LayerContext): Layer {
  return new LayerParser(document, context).layer(validateDocument(document, context.name))
}

class LazySource implements Source {
  readonly layer: string
  readonly #document: PositionedDocument
  readonly #path: DocumentPath

  constructor(layer: string, document: PositionedDocument, path: DocumentPath) {
    this.layer = layer
    this.#document = document
    this.#path = path
  }

  get place(): Place | undefined {
    return this.#document.placeOf(this.#path)
  }
}

class LayerParser {
  readonly #document: PositionedDocument
  readonly #context: LayerContext

  constructor(document: PositionedDocument, context: LayerContext) {
    this.#document = document
    this.#context = context
  }

  layer(config: ConfigDocument): Layer {
    const { files = {}, network = {}, exec = {}, limits = {}, tools = {} } = config
    const said: { -readonly [K in keyof Settings]?: Settings[K] | undefined } = {
      profile: this.#scalar(['profile'], config.profile),
      isolation: this.#scalar(['isolation'], config.isolation),
      backend: this.#scalar(['backend'], config.backend),
      'files.read': this.#list(['files', 'read'], files.read, text => this.#grant(text)),
      'files.write': this.#list(['files', 'write'], files.write, text => this.#grant(text)),
      'files.deny': this.#list(['files', 'deny'], files.deny, text => this.#deny(text)),
      'files.protect': this.#list(['files', 'protect'], files.protect, text => this.#protect(text)),
      'network.http': this.#list(['network', 'http'], network.http, text => this.#http(text)),
      'network.tcp': this.#list(['network', 'tcp'], network.tcp, parseTcpRule),
      'network.groups': this.#list(['network', 'groups'], network.groups, group),
      'network.deny': this.#list(['network', 'deny'], network.deny, text =>
        parseDenyRule(text, this.#context.isPublicSuffix),
      ),
      'network.ask': this.#scalar(['network', 'ask'], network.ask),
      'network.mode': this.#scalar(['network', 'mode'], network.mode),
      'network.upstreamProxy': this.#parsed(['network', 'upstreamProxy'], network.upstreamProxy, proxy),
      'network.hold': this.#measured(['network', 'hold'], network.hold, parseMillis),
      'network.idle': this.#measured(['network', 'idle'], network.idle, parseMillis),
      'network.offline': this.#scalar(['network', 'offline'], network.offline),
      'exec.timeout': this.#measured(['exec', 'timeout'], exec.timeout, parseMillis),
      'exec.ceiling': this.#measured(['exec', 'ceiling'], exec.ceiling, parseMillis),
      'exec.maxOutput': this.#measured(['exec', 'maxOutput'], exec.maxOutput, parseBytes),
      'limits.cpus': this.#parsed(['limits', 'cpus'], limits.cpus, number('cpus', 0.01, 4096, false)),
      'limits.memory': this.#measured(['limits', 'memory'], limits.memory, parseBytes),
      'limits.pids': this.#parsed(['limits', 'pids'], limits.pids, number('pids', 1, 4_194_304, true)),
      'limits.wall': this.#measured(['limits', 'wall'], limits.wall, parseMillis),
      'limits.disk': this.#measured(['limits', 'disk'], limits.disk, parseBytes),
      'limits.output': this.#measured(['limits', 'output'], limits.output, parseBytes),
      'limits.files': this.#parsed(['limits', 'files'], limits.files, number('files', 16, 1_048_576, true)),
      env: this.#env(config.env),
      mounts: this.#list(['mounts'], config.mounts, mount => this.#mount(mount)),
      image: this.#parsed(['image'], config.image, image),
      'tools.shell': this.#scalar(['tools', 'shell'], tools.shell),
      'tools.allow': this.#list(['tools', 'allow'], tools.allow, tool),
      'tools.exec': this.#scalar(['tools', 'exec'], tools.exec),
      user: this.#parsed(['user'], config.user, user),
      runtime: this.#parsed(['runtime'], config.runtime, runtime),
      'git.identity': this.#scalar(['git', 'identity'], config.git?.identity),
      'ssh.agent': this.#list(['ssh', 'agent'], config.ssh?.agent, fingerprint),
      acceptGaps: this.#list(['acceptGaps'], config.acceptGaps, gapName),
      ports: this.#list(['ports'], config.ports, forward),
    }
    const settings = Object.fromEntries(
      Object.entries(said).filter(([, value]) => value !== undefined),
    ) as Settings
    this.#checkNested(config, settings)
    return { name: this.#context.name, trust: this.#context.trust, settings }
  }

  /**
   * A sandbox can replace anything in a writable place with a link, and the next run would follow it. So a path written inside
   * a place that this layer makes writable must not resolve to a path outside it.
   */
  #checkNested({ files = {}, mounts = [] }: ConfigDocument, said: Settings): void {
    const writable = [
      ...(said['files.write']?.items ?? []).map(({ rule }) => rule.path as string),
      ...(said.mounts?.items ?? []).flatMap(({ rule }) =>
        rule.kind === 'host' && rule.mode === 'rw' ? [rule.host as string] : [],
      ),
    ]
    if (writable.length === 0) return
    const check = (path: DocumentPath, text: string): void => {
      const { world } = this.#context
      const written = absolute(text, world)
      if (!written.ok || !writable.some(place => place !== written.value && isWithin(written.value, place)))
        return
      const real = tryLocate(written.value, world)
      if (!real.ok) return
      for (const place of writable)
        if (isWithin(written.value, place) && !isWithin(real.value.real, place))
          this.#refuse(path, text, {
            why: `the path is a link out of ${place}, which the sandbox may write, to ${real.value.real}`,
            fix: 'name its target',
          })
    }
    for (const key of ['read', 'write'] as const)
      for (const [i, text] of (files[key] ?? []).entries()) check(['files', key, i], text)
    for (const [i, mount] of mounts.entries()) if ('host' in mount) check(['mounts', i], mount.host)
  }

  /** Computes the line lazily: few rules of a large config are ever asked for it. */
  #source(path: DocumentPath): Source {
    return new LazySource(this.#context.name, this.#document, path)
  }

  #refuse(path: DocumentPath, said: unknown, parsed: { why: string; fix?: string }, at = path): never {
    const shown = typeof said === 'string' && !mayHoldSecret(path) ? ` "${printable(said, 120)}"` : ''
    throw new PenError('CONFIG_VALUE', {
      what: `${path.filter(key => typeof key === 'string').join('.')}${shown}: ${parsed.why}`,
      at: this.#document.placeOf(at) ?? this.#context.name,
      hint: parsed.fix ?? 'see docs/reference/config.md',
    })
  }

  #scalar<T>(path: DocumentPath, value: T | undefined): Setting<T> | undefined {
    return value === undefined ? undefined : { value, source: this.#source(path) }
  }

  #parsed<I, T>(
    path: DocumentPath,
    said: I | undefined,
    parse: (said: I) => Parsed<T>,
  ): Setting<T> | undefined {
    if (said === undefined) return undefined
    const parsed = parse(said)
    if (!parsed.ok) this.#refuse(path, said, parsed)
    return { value: parsed.value, source: this.#source(path) }
  }

  #measured<T>(
    path: DocumentPath,
    said: string | undefined,
    parse: (text: string, at: Place | string) => T,
  ): Setting<T> | undefined {
    if (said === undefined) return undefined
    const source = this.#source(path)
    return { value: parse(said, this.#document.placeOf(path) ?? this.#context.name), source }
  }

  #list<I, T>(
    path: DocumentPath,
    said: readonly I[] | undefined,
    parse: (said: I) => Parsed<T>,
  ): List<T> | undefined {
    if (said === undefined) return undefined
    const items = said.map((entry, i) => {
      const parsed = parse(entry)
      if (!parsed.ok) this.#refuse([...path, i], entry, parsed)
      return { rule: parsed.value, source: this.#source([...path, i]) }
    })
    return { clear: items.length === 0, items }
  }

  #grant(text: string): Parsed<PathGrant> {
    if (/[*?]/.test(text))
      return { ok: false, why: 'grants take no patterns', fix: 'name the directory itself' }
    const path = canonicalize(text, this.#context.trust, this.#context.world)
    if (!path.ok) return path
    const source = checkMountSource(path.value, this.#context.world)
    return source.ok ? { ok: true, value: { path: source.value, rank: depth(source.value) } } : source
  }

  #http(text: string): Parsed<AllowRule> {
    return parseHttpRule(text, this.#context.isPublicSuffix)
  }

  #deny(text: string): Parsed<FileDenyRule> {
    const { world } = this.#context
    if (text.startsWith('/') || text.startsWith('~')) {
      const path = absolute(text, world)
      if (!path.ok) return path
      if (/[*?]/.test(text))
        return {
          ok: false,
          why: 'patterns are anchored at the workspace',
          fix: 'write it relative to the workspace',
        }
      // Verdicts use real paths, so a denial by an alias also denies the real name.
      const found = tryLocate(path.value, world)
      if (!found.ok) return found
      const { real } = found.value
      if (isWithin(world.workspace, real))
        return { ok: false, why: 'this would deny the whole workspace', fix: 'name a place inside it' }
      return { ok: true, value: { kind: 'path', path: real } }
    }
    const glob = parseGlob(text)
    return glob.ok ? { ok: true, value: { kind: 'glob', glob: glob.value } } : glob
  }

  #protect(text: string): Parsed<ProtectRule> {
    const { world } = this.#context
    if (/[*?]/.test(text))
      return { ok: false, why: 'protected places take no patterns', fix: 'name each of them' }
    const path = absolute(text, world)
    if (!path.ok) return path
    if (!isWithin(path.value, world.workspace) || path.value === world.workspace)
      return {
        ok: false,
        why: 'only places inside the workspace can be protected',
        fix: 'elsewhere, grant it under files.read',
      }
    return { ok: true, value: { path: path.value } }
  }

  #mount(said: NonNullable<ConfigDocument['mounts']>[number]): Parsed<Mount> {
    const at = guest(said.at)
    if (!at.ok) return at
    if ('volume' in said) {
      if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(said.volume))
        return { ok: false, why: 'a volume is named with a–z, 0–9, ".", "_" and "-"', fix: 'rename it' }
      return { ok: true, value: { kind: 'volume', volume: said.volume, at: at.value } }
    }
    const path = canonicalize(said.host, this.#context.trust, this.#context.world)
    if (!path.ok) return path
    const host = checkMountSource(path.value, this.#context.world)
    if (!host.ok) return host
    return { ok: true, value: { kind: 'host', host: host.value, at: at.value, mode: said.mode ?? 'ro' } }
  }

  #env(said: ConfigDocument['env']): ReadonlyMap<string, Setting<EnvValue>> | undefined {
    if (said === undefined) return undefined
    const out = new Map<string, Setting<EnvValue>>()
    for (const [name, value] of Object.entries(said)) {
      const path = ['env', name]
      const parsed = envEntry(name, typeof value === 'string' ? value : undefined)
      if (!parsed.ok)
        this.#refuse(['env'], undefined, { ...parsed, why: `${printable(name, 80)}: ${parsed.why}` }, path)
      out.set(name, { value: parsed.value, source: this.#source(path) })
    }
    return out
  }
}
