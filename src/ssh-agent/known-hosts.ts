/** The keys of servers that the user knows, from OpenSSH's own files. */
import { createHmac } from 'node:crypto'

/** GitHub and GitLab publish these. They are known without a file. */
const SHIPPED = [
  'github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl',
  'gitlab.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf',
].join('\n')

export interface KnownKey {
  /** `host:port`. */
  readonly host: string
  readonly type: string
  /** Base64. */
  readonly key: string
}

/** `hosts` are `host:port`; `files` are contents of known_hosts files. A revoked key belongs to no host. */
export function knownKeys(hosts: readonly string[], files: readonly string[]): KnownKey[] {
  const lines = [SHIPPED, ...files].flatMap(file => file.split('\n')).map(line => line.trim())
  const revoked = new Set(
    lines.filter(line => line.startsWith('@revoked ')).map(line => line.split(/\s+/)[3]),
  )
  const found = lines.flatMap(line => {
    const [names = '', type = '', key = ''] = line.split(/\s+/)
    if (/^[#@]/.test(line) || !/^[a-z0-9@.-]+$/.test(type) || !/^[A-Za-z0-9+/]+=*$/.test(key)) return []
    if (revoked.has(key)) return []
    return hosts.filter(host => isNamed(nameOf(host), names)).map(host => ({ host, type, key }))
  })
  return [...new Map(found.map(one => [`${one.host} ${one.key}`, one])).values()]
}

/** As OpenSSH writes it. */
export function nameOf(host: string): string {
  const at = host.lastIndexOf(':')
  const [name, port] = [host.slice(0, at), host.slice(at + 1)]
  return port === '22' ? name : `[${name}]:${port}`
}

/** Patterns with `*`, `?` and `!` name no host here: pen takes a key for exactly the host that it was learned from. */
function isNamed(name: string, names: string): boolean {
  const [, salt, hash] = /^\|1\|([^|]+)\|([^|]+)$/.exec(names) ?? []
  if (salt === undefined || hash === undefined) return names.split(',').includes(name)
  return createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64') === hash
}
