/** Parses one entry of `secrets`. */
import { envEntry } from './entries.ts'
import { absolute, type PathWorld, type Trust } from './files/path.ts'
import { type IsPublicSuffix, parseAllowRule } from './network/endpoint.ts'
import type { AllowRule } from './network/net-rule.ts'
import { HTTP_PORT } from './network/port.ts'
import type { Secret, SecretHost, SecretSource } from './network/secret.ts'
import type { ConfigDocument } from './schema.ts'
import { type Parsed, refuse } from './source.ts'

type Said = NonNullable<ConfigDocument['secrets']>[number]

interface Context {
  readonly trust: Trust
  readonly world: PathWorld
  readonly isPublicSuffix: IsPublicSuffix
}

const DEFAULT_HEADERS = ['authorization', 'x-api-key']

/** The gateway writes these fields itself, or they steer the connection. */
const NEVER =
  /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|proxy-.*|x-pen-.*|sec-.*)$/

export function secretEntry(said: Said, context: Context): Parsed<Secret> {
  const { name } = said
  if (context.trust !== 'user')
    return refuse('a project’s document has no secrets', 'write them into the live config: pen secret add')
  const variable = envEntry(name, undefined)
  if (!variable.ok) return variable
  const from = 'oauth' in said.from ? servers(said.from.oauth, context) : source(said.from, context.world)
  if (!from.ok) return from
  if (said.to.length === 0) return refuse('no host may receive it', 'name one under "to"')
  const to: SecretHost[] = []
  for (const text of said.to) {
    const host = secretHost(text, context.isPublicSuffix)
    if (!host.ok) return host
    to.push(host.value)
  }
  if (said.sign !== undefined) {
    if (from.value.kind === 'oauth') return refuse('tokens of a sign-in do not sign', 'remove "sign"')
    if (said.in !== undefined) return refuse('keys that sign are in no field', 'remove "in"')
    if (to.some(({ plain }) => plain))
      return refuse('signed requests need TLS', 'name the host without http://')
    return { ok: true, value: { name, from: from.value, to, headers: [], parameters: [], sign: said.sign } }
  }
  if (from.value.kind === 'oauth') to.push(...from.value.servers.map(rule => ({ rule, plain: false })))
  const headers: string[] = []
  const parameters: string[] = []
  for (const text of said.in ?? DEFAULT_HEADERS.map(key => `header:${key}`)) {
    const [, parameter] = /^query:([\w.-]{1,64})$/.exec(text) ?? []
    if (parameter !== undefined) {
      parameters.push(parameter)
      continue
    }
    const [, key] = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64})$/.exec(text) ?? []
    if (key === undefined)
      return refuse('not a place in a request', 'write it as "header:x-api-key" or "query:key"')
    if (NEVER.test(key.toLowerCase())) return refuse(`the field ${key} cannot carry a secret`)
    headers.push(key.toLowerCase())
  }
  if (headers.length + parameters.length === 0)
    return refuse('no part of a request may carry it', 'name one under "in"')
  return { ok: true, value: { name, from: from.value, to, headers: [...new Set(headers)], parameters } }
}

function secretHost(text: string, isPublicSuffix: IsPublicSuffix): Parsed<SecretHost> {
  const plain = text.startsWith('http://')
  const written = plain ? text.slice('http://'.length) : text
  const [host = ''] = written.split('/')
  const spelled = plain && !host.includes(':') ? `${host}:${HTTP_PORT}${written.slice(host.length)}` : written
  const rule = parseAllowRule(spelled, isPublicSuffix)
  if (!rule.ok) return rule
  const { value } = rule
  if (value.kind === 'address') return refuse('a secret goes to a name, not to an address', 'name the host')
  if (value.request !== undefined && value.request.methods.length > 0)
    return refuse(
      'a secret is bound to a host and a path, not to methods',
      'add a rule about requests for that',
    )
  return { ok: true, value: { rule: value, plain } }
}

/** Each is also a receiver: a request must be opened to be changed. */
function servers(texts: readonly string[], { isPublicSuffix }: Context): Parsed<SecretSource> {
  const rules: AllowRule[] = []
  for (const text of texts) {
    const host = secretHost(text, isPublicSuffix)
    if (!host.ok) return host
    if (host.value.plain) return refuse('tokens need TLS', 'name the server without http://')
    if ((host.value.rule.request?.path ?? '') === '' || text.includes('*'))
      return refuse('a sign-in server has a path without a star', 'write "host:port/oauth/token"')
    rules.push(host.value.rule)
  }
  if (rules.length === 0) return refuse('no sign-in server', 'name one as "host:port"')
  return { ok: true, value: { kind: 'oauth', servers: rules } }
}

function source(said: Exclude<Said['from'], { oauth: unknown }>, world: PathWorld): Parsed<SecretSource> {
  if ('env' in said) {
    const variable = envEntry(said.env, undefined)
    return variable.ok ? { ok: true, value: { kind: 'env', variable: said.env } } : variable
  }
  if ('file' in said) {
    const path = absolute(said.file, world)
    return path.ok ? { ok: true, value: { kind: 'file', path: path.value } } : path
  }
  if ('command' in said) {
    const [program] = said.command
    if (program === undefined || program === '') return refuse('the command is missing')
    if (said.command.some(word => word.includes('\0'))) return refuse('the command has a NUL byte')
    return { ok: true, value: { kind: 'command', argv: said.command } }
  }
  const attributes = new Map(Object.entries(said.keyring))
  if (attributes.size === 0) return refuse('the entry has no attributes', 'write { "service": "…" }')
  if ([...attributes].flat().some(word => word === '' || word.startsWith('-') || word.includes('\0')))
    return refuse('an attribute is empty or begins with "-"')
  return { ok: true, value: { kind: 'keyring', attributes } }
}
