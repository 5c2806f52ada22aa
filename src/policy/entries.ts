/** Parsers for single config entries: paths, mounts, variables, tools, users, ports. Each refusal has a reason. */
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { parseGlob } from './files/glob.ts'
import {
  absolute,
  canonicalize,
  checkMountSource,
  depth,
  guest,
  type HostPath,
  isWithin,
  type PathWorld,
  type Trust,
  tryLocate,
} from './files/path.ts'
import { GROUPS } from './network/groups.ts'
import { parsePort } from './network/port.ts'
import type { ConfigDocument } from './schema.ts'
import type { EnvValue, FileDenyRule, Image, Mount, PathGrant, PortForward, ProtectRule } from './settings.ts'
import { type Parsed, refuse } from './source.ts'

/** Whose text it is, and the file system in which its paths are resolved. */
interface PathContext {
  readonly trust: Trust
  readonly world: PathWorld
}

const isGlob = (text: string): boolean => /[*?]/.test(text)

function mountSource(text: string, { trust, world }: PathContext): Parsed<HostPath> {
  const path = canonicalize(text, trust, world)
  return path.ok ? checkMountSource(path.value, world) : path
}

export function pathGrant(text: string, context: PathContext): Parsed<PathGrant> {
  if (isGlob(text)) return refuse('grants take no patterns', 'name the directory itself')
  const path = mountSource(text, context)
  return path.ok ? { ok: true, value: { path: path.value, rank: depth(path.value) } } : path
}

export function fileDenial(text: string, { world }: PathContext): Parsed<FileDenyRule> {
  if (!text.startsWith('/') && !text.startsWith('~')) {
    const glob = parseGlob(text)
    return glob.ok ? { ok: true, value: { kind: 'glob', glob: glob.value } } : glob
  }
  const path = absolute(text, world)
  if (!path.ok) return path
  if (isGlob(text))
    return refuse('patterns are anchored at the workspace', 'write it relative to the workspace')
  // Verdicts use real paths, so a denial by an alias also denies the real name.
  const found = tryLocate(path.value, world)
  if (!found.ok) return found
  const { real } = found.value
  if (isWithin(world.workspace, real))
    return refuse('this would deny the whole workspace', 'name a place inside it')
  const alias = path.value === real ? {} : { alias: path.value }
  return { ok: true, value: { kind: 'path', path: real, ...alias } }
}

export function protectedPlace(text: string, { world }: PathContext): Parsed<ProtectRule> {
  if (isGlob(text)) return refuse('protected places take no patterns', 'name each of them')
  const path = absolute(text, world)
  if (!path.ok) return path
  if (!isWithin(path.value, world.workspace) || path.value === world.workspace)
    return refuse('only places inside the workspace can be protected', 'elsewhere, grant it under files.read')
  return { ok: true, value: { path: path.value } }
}

export function mount(
  said: NonNullable<ConfigDocument['mounts']>[number],
  context: PathContext,
): Parsed<Mount> {
  const at = guest(said.at)
  if (!at.ok) return at
  if ('volume' in said) {
    if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(said.volume))
      return refuse('a volume is named with a–z, 0–9, ".", "_" and "-"', 'rename it')
    return { ok: true, value: { kind: 'volume', volume: said.volume, at: at.value } }
  }
  const host = mountSource(said.host, context)
  if (!host.ok) return host
  return { ok: true, value: { kind: 'host', host: host.value, at: at.value, mode: said.mode ?? 'ro' } }
}

/** Variables that say where a program runs. Only pen sets them, so a sandbox cannot fake its own state. */
const PEN_OWN = /^(AGENT_IN_SANDBOX|SOFT_SANDBOX|PEN_.*)$/

/** One `env` entry. Without a text, the host's value of that name is passed. */
export function envEntry(name: string, text: string | undefined): Parsed<EnvValue> {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name))
    return refuse('not a variable name', 'use letters, digits and "_", not starting with a digit')
  if (PEN_OWN.test(name)) return refuse('this variable is set by pen alone', 'choose another name')
  if (text === undefined) return { ok: true, value: { kind: 'host' } }
  if (text.includes('\0')) return refuse('the value has a NUL byte')
  return { ok: true, value: { kind: 'text', text } }
}

export const number =
  (name: string, least: number, most: number, whole: boolean) =>
  (value: number): Parsed<number> =>
    value >= least && value <= most && (!whole || Number.isInteger(value))
      ? { ok: true, value }
      : refuse(`${name} must be ${whole ? 'a whole number ' : ''}from ${least} to ${most}`)

export function group(name: string): Parsed<string> {
  if (Object.hasOwn(GROUPS, name)) return { ok: true, value: name }
  const meant = nearest(name, Object.keys(GROUPS))
  return refuse(
    'no such group',
    meant === undefined ? `the groups are ${Object.keys(GROUPS).join(', ')}` : `did you mean "${meant}"?`,
  )
}

export function proxy(text: string | null): Parsed<string | null> {
  if (text === null) return { ok: true, value: null }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    return refuse('not the address of an HTTP proxy', 'write it as http://proxy.example.com:3128')
  return { ok: true, value: text }
}

const matching =
  (pattern: RegExp, why: string, fix: string) =>
  (text: string): Parsed<string> =>
    pattern.test(text) ? { ok: true, value: text } : refuse(why, fix)

export const tool = matching(
  /^(?!\.{1,2}$)[A-Za-z0-9_.+@-]+$/,
  'a tool is named without a path',
  'write "git", not "/usr/bin/git"',
)

export const user = matching(
  /^(host|[1-9][0-9]{0,8}:[1-9][0-9]{0,8})$/,
  'the user is "host" or "uid:gid" without root',
  'write "host", or for example "1000:1000"',
)

export const runtime = matching(
  /^[a-z0-9][a-z0-9._-]{0,62}$/,
  'a runtime is named without a path',
  'write "runc", "crun" or "runsc"',
)

export const fingerprint = matching(
  /^SHA256:[A-Za-z0-9+/]{43}$/,
  'not a key fingerprint',
  'copy it from `ssh-add -l`, as SHA256:…',
)

export const agentHost = matching(
  /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?:[1-9][0-9]{0,4}$/,
  'not a server with a port',
  'write it as "github.com:22"',
)

export const signaturePurpose = matching(
  /^[a-z][a-z0-9@.-]{0,62}$/,
  'not a purpose of signatures',
  'write "git" for commits and tags',
)

export const gapName = matching(
  /^[a-z][a-z0-9-]{0,62}$/,
  'not the name of a gap',
  '`pen plan` lists the gaps by name',
)

export function forward(said: { guest: number; host: number }): Parsed<PortForward> {
  const guestPort = parsePort(String(said.guest))
  const hostPort = parsePort(String(said.host))
  if (!guestPort.ok) return guestPort
  if (!hostPort.ok) return hostPort
  return { ok: true, value: { guest: guestPort.value, host: hostPort.value } }
}

export function image(said: NonNullable<ConfigDocument['image']>): Parsed<Image> {
  const { dockerfile = '', context = '.', pull = 'missing' } = said
  const args = new Map(Object.entries(said.args ?? {}))
  for (const name of args.keys())
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      return refuse(`"${printable(name, 80)}" is not a build argument`)
  return { ok: true, value: { dockerfile, context, args, pull } }
}
