/** Parsers for single config entries: variables, tools, users, ports. Each refusal has a reason. */
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { GROUPS } from './network/groups.ts'
import { parsePort } from './network/port.ts'
import type { ConfigDocument } from './schema.ts'
import type { EnvValue, Image, PortForward } from './settings.ts'
import type { Parsed } from './source.ts'

/** Variables that say where a program runs. Only pen sets them, so a sandbox cannot fake its own state. */
const PEN_OWN = /^(AGENT_IN_SANDBOX|SOFT_SANDBOX|PEN_.*)$/

/** One `env` entry. Without a text, the host's value of that name is passed. */
export function envEntry(name: string, text: string | undefined): Parsed<EnvValue> {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name))
    return {
      ok: false,
      why: 'not a variable name',
      fix: 'use letters, digits and "_", not starting with a digit',
    }
  if (PEN_OWN.test(name))
    return { ok: false, why: 'this variable is set by pen alone', fix: 'choose another name' }
  if (text === undefined) return { ok: true, value: { kind: 'host' } }
  if (text.includes('\0')) return { ok: false, why: 'the value has a NUL byte' }
  return { ok: true, value: { kind: 'text', text } }
}

export const number =
  (name: string, least: number, most: number, whole: boolean) =>
  (value: number): Parsed<number> =>
    value >= least && value <= most && (!whole || Number.isInteger(value))
      ? { ok: true, value }
      : { ok: false, why: `${name} must be ${whole ? 'a whole number ' : ''}from ${least} to ${most}` }

export function group(name: string): Parsed<string> {
  if (Object.hasOwn(GROUPS, name)) return { ok: true, value: name }
  const meant = nearest(name, Object.keys(GROUPS))
  const fix =
    meant === undefined ? `the groups are ${Object.keys(GROUPS).join(', ')}` : `did you mean "${meant}"?`
  return { ok: false, why: 'no such group', fix }
}

export function proxy(text: string | null): Parsed<string | null> {
  if (text === null) return { ok: true, value: null }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    return {
      ok: false,
      why: 'not the address of an HTTP proxy',
      fix: 'write it as http://proxy.example.com:3128',
    }
  return { ok: true, value: text }
}

export function tool(name: string): Parsed<string> {
  return /^[A-Za-z0-9_.+@-]+$/.test(name) && name !== '.' && name !== '..'
    ? { ok: true, value: name }
    : { ok: false, why: 'a tool is named without a path', fix: 'write "git", not "/usr/bin/git"' }
}

export function user(text: string): Parsed<string> {
  return text === 'host' || /^[1-9][0-9]{0,8}:[1-9][0-9]{0,8}$/.test(text)
    ? { ok: true, value: text }
    : {
        ok: false,
        why: 'the user is "host" or "uid:gid" without root',
        fix: 'write "host", or for example "1000:1000"',
      }
}

export const runtime = (text: string): Parsed<string> =>
  /^[a-z0-9][a-z0-9._-]{0,62}$/.test(text)
    ? { ok: true, value: text }
    : { ok: false, why: 'a runtime is named without a path', fix: 'write "runc", "crun" or "runsc"' }

export const fingerprint = (text: string): Parsed<string> =>
  /^SHA256:[A-Za-z0-9+/]{43}$/.test(text)
    ? { ok: true, value: text }
    : { ok: false, why: 'not a key fingerprint', fix: 'copy it from `ssh-add -l`, as SHA256:…' }

export const gapName = (text: string): Parsed<string> =>
  /^[a-z][a-z0-9-]{0,62}$/.test(text)
    ? { ok: true, value: text }
    : { ok: false, why: 'not the name of a gap', fix: '`pen plan` lists the gaps by name' }

export function forward(said: { guest: number; host: number }): Parsed<PortForward> {
  const guestPort = parsePort(String(said.guest))
  const hostPort = parsePort(String(said.host))
  if (!guestPort.ok) return guestPort
  if (!hostPort.ok) return hostPort
  return { ok: true, value: { guest: guestPort.value, host: hostPort.value } }
}

export function image(said: NonNullable<ConfigDocument['image']>): Parsed<Image> {
  const args = new Map(Object.entries(said.args ?? {}))
  for (const name of args.keys())
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      return { ok: false, why: `"${printable(name, 80)}" is not a build argument` }
  return {
    ok: true,
    value: {
      dockerfile: said.dockerfile ?? '',
      context: said.context ?? '.',
      args,
      pull: said.pull ?? 'missing',
    },
  }
}
