import { PenError, type Place } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { parseAllowRule } from '../../policy/network/endpoint.ts'
import type { AllowRule } from '../../policy/network/net-rule.ts'
import { everySuffixIsPublic } from '../../policy/network/net-target.ts'

/** An address in a package manager's configuration, and its place. */
export interface Mirror {
  /** May contain a user name and password. Only this file parses it, and it is never shown. */
  readonly url: string
  readonly at: Place | string
  /** The setting that names the address, if a package manager inside needs it: see `package-sources.ts`. */
  readonly setting?: string
}

const PORTS: ReadonlyMap<string | undefined, string> = new Map([
  ['http', '80'],
  ['https', '443'],
  ['ssh', '22'],
])

/** Sources that need no network. */
const LOCAL_SCHEMES: ReadonlySet<string | undefined> = new Set(['file', 'copy', 'cdrom', 'rsh'])

/**
 * The only parser of these addresses, for the rule and for the configuration inside. A second parser could read a password as
 * a host or a path.
 */
const ADDRESS =
  /^(?:(?:sparse|registry|git|mirror)\+)?([a-z]+):(?:\/\/(?:[^/?#\s]*@)?([^/?#\s]*)([^?#\s]*))?/i

function partsOf({ url }: Mirror) {
  const [, scheme, authority, path = ''] = ADDRESS.exec(url.trim()) ?? []
  return { scheme: scheme?.toLowerCase(), authority, path }
}

/** The address without user name, password, query and fragment, any of which may hold credentials. */
export function addressOf(mirror: Mirror): string | undefined {
  const { scheme, authority, path } = partsOf(mirror)
  // Escapes characters that a URL cannot contain.
  return URL.parse(`${scheme}://${authority}${path}`)?.href
}

/** The grant for one mirror; undefined for a local directory or disc. */
export function mirrorRule(mirror: Mirror): AllowRule | undefined {
  const { scheme, authority } = partsOf(mirror)
  if (LOCAL_SCHEMES.has(scheme)) return undefined
  const port = PORTS.get(scheme)
  if (port === undefined || authority === undefined || authority === '')
    throw new PenError('GROUP', {
      what: 'pen cannot parse the address of a package source',
      at: mirror.at,
      hint: 'write it as http://HOST/ or https://HOST/, or allow its host with pen allow',
    })
  const rule = parseAllowRule(
    /:[0-9]+$/.test(authority) ? authority : `${authority}:${port}`,
    everySuffixIsPublic,
  )
  if (rule.ok) return rule.value
  throw new PenError('GROUP', {
    what: `the package source ${printable(authority, 80)} cannot be reached from a sandbox: ${rule.why}`,
    at: mirror.at,
    ...(rule.fix !== undefined && { hint: rule.fix }),
  })
}
