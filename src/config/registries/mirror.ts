import { PenError, type Place } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { parseAllowRule } from '../../policy/network/endpoint.ts'
import type { AllowRule } from '../../policy/network/net-rule.ts'
import { everySuffixIsPublic } from '../../policy/network/net-target.ts'

/** An address that a package manager's configuration names, and where it says so. */
export interface Mirror {
  /** May hold a user name and password: it is taken apart by `mirrorRule` and never shown. */
  readonly url: string
  readonly at: Place | string
  /** The setting that names it, where a package manager inside is to be told of it: see `package-sources.ts`. */
  readonly setting?: string
}

const PORTS: ReadonlyMap<string | undefined, string> = new Map([
  ['http', '80'],
  ['https', '443'],
  ['ssh', '22'],
])

/** Where packages come from that need no network. */
const LOCAL_SCHEMES: ReadonlySet<string | undefined> = new Set(['file', 'copy', 'cdrom', 'rsh'])

/**
 * The one reading of an address, for what is opened and for what is told inside: a second one could take for a host or a path what
 * the first took for a password.
 */
const ADDRESS =
  /^(?:(?:sparse|registry|git|mirror)\+)?([a-z]+):(?:\/\/(?:[^/?#\s]*@)?([^/?#\s]*)([^?#\s]*))?/i

function partsOf({ url }: Mirror) {
  const [, scheme, authority, path = ''] = ADDRESS.exec(url.trim()) ?? []
  return { scheme: scheme?.toLowerCase(), authority, path }
}

/** Of one that has a rule: neither name and password nor question and fragment, all of which may sign in. */
export function addressOf(mirror: Mirror): string | undefined {
  const { scheme, authority, path } = partsOf(mirror)
  // What no address can have is written in its escaped form.
  return URL.parse(`${scheme}://${authority}${path}`)?.href
}

/** The grant for one mirror; undefined when it is a directory or a disc. */
export function mirrorRule(mirror: Mirror): AllowRule | undefined {
  const { scheme, authority } = partsOf(mirror)
  if (LOCAL_SCHEMES.has(scheme)) return undefined
  const port = PORTS.get(scheme)
  if (port === undefined || authority === undefined || authority === '')
    throw new PenError('GROUP', {
      what: 'the address of a package source is not one that pen can read',
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
