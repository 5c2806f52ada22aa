/**
 * Resolves names on the host, and only names that the policy allowed, because a lookup is a message to the owner of the
 * zone. Search domains do not apply. The hosts file comes first. Answers are hostile, and the dialer checks each one.
 */
import { readFile } from 'node:fs/promises'
import { type Address, parseAddress } from '../../policy/network/address.ts'
import { type Host, parseHost } from '../../policy/network/host.ts'

export type Resolution =
  | { readonly ok: true; readonly addresses: readonly Address[] }
  | { readonly ok: false; readonly reason: 'name-not-found' | 'lookup-failed'; readonly why: string }

export interface Resolver {
  resolve(name: Host): Promise<Resolution>
  /** Clears the cache, after a policy change. */
  forget?(): void
}

export interface ResolverOptions {
  /** `address:port`. The default is the name servers of the host. */
  readonly servers?: readonly string[]
  readonly timeoutMs?: number
  readonly hostsFile?: string | null
}

/** Long enough to load a page, and short enough to follow a change of the zone. */
const MAX_TTL_MS = 30_000
const MAX_KNOWN = 1024
const MAX_ADDRESSES = 32
/** How long to wait for the other address family after the first answer. */
const OTHER_FAMILY_MS = 50
const HOSTS_MS = 2_000

interface Answer {
  readonly addresses: readonly Address[]
  readonly ttlMs: number
  readonly failure: 'name-not-found' | 'lookup-failed' | undefined
}

export class HostResolver implements Resolver {
  readonly #options: ResolverOptions
  readonly #known = new Map<Host, { readonly until: number; readonly resolution: Resolution }>()
  readonly #asking = new Map<Host, Promise<Resolution>>()
  #hosts: { readonly since: number; readonly text: Promise<string> } | undefined

  constructor(options: ResolverOptions = {}) {
    this.#options = options
  }

  forget(): void {
    this.#known.clear()
    this.#asking.clear()
  }

  resolve(name: Host): Promise<Resolution> {
    const known = this.#known.get(name)
    if (known !== undefined && known.until > performance.now()) return Promise.resolve(known.resolution)
    const asked = this.#asking.get(name)
    if (asked !== undefined) return asked
    const asking = this.#ask(name).finally(() => {
      if (this.#asking.get(name) === asking) this.#asking.delete(name)
    })
    this.#asking.set(name, asking)
    return asking
  }

  async #ask(name: Host): Promise<Resolution> {
    const local = await this.#fromHostsFile(name)
    if (local.length > 0) return { ok: true, addresses: local }
    const { addresses, ttlMs, failure } = await this.#fromDns(name)
    if (addresses.length === 0)
      return failure === 'lookup-failed'
        ? { ok: false, reason: failure, why: `the lookup of ${name} failed or timed out` }
        : { ok: false, reason: 'name-not-found', why: `${name} does not exist, or has no address` }
    const resolution: Resolution = { ok: true, addresses: addresses.slice(0, MAX_ADDRESSES) }
    if (ttlMs > 0) {
      if (this.#known.size >= MAX_KNOWN) this.#known.clear()
      this.#known.set(name, { until: performance.now() + ttlMs, resolution })
    }
    return resolution
  }

  #fromDns(name: Host): Promise<Answer> {
    const { servers, timeoutMs = 5000 } = this.#options
    const { Resolver } = process.getBuiltinModule('node:dns/promises')
    // A new resolver for each lookup: it reads the current name servers, and starts with an empty cache.
    const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 4), tries: 2 })
    if (servers !== undefined) dns.setServers(servers)
    // The final dot makes the name fully qualified.
    const asked = `${name}.`
    return new Promise(resolve => {
      const answers: Answer[] = []
      let timer = setTimeout(() => finish(), timeoutMs)
      const finish = (): void => {
        clearTimeout(timer)
        // Otherwise it would ask the other name servers too, with a descriptor for each.
        if (answers.length < 2) dns.cancel()
        resolve(merge(answers))
      }
      const take = (answer: Answer): void => {
        answers.push(answer)
        if (answers.length === 2) finish()
        else if (answer.addresses.length > 0) {
          clearTimeout(timer)
          timer = setTimeout(finish, OTHER_FAMILY_MS)
        }
      }
      for (const query of [dns.resolve6(asked, TTL), dns.resolve4(asked, TTL)])
        void query.then(
          records => take(answerOf(records)),
          error => take(failureOf(error)),
        )
    })
  }

  async #fromHostsFile(name: Host): Promise<Address[]> {
    const { hostsFile = '/etc/hosts' } = this.#options
    if (hostsFile === null) return []
    const now = performance.now()
    // The file is trusted.
    if (this.#hosts === undefined || now - this.#hosts.since > HOSTS_MS)
      this.#hosts = {
        since: now,
        text: readFile(hostsFile, 'utf8').then(
          text => text.toLowerCase(),
          () => '',
        ),
      }
    return hostsEntries(await this.#hosts.text, name)
  }
}

const TTL = { ttl: true } as const

/** `text` is in lower case. Parses only lines that contain the name, because some files have 100,000 lines. */
export function hostsEntries(text: string, name: Host): Address[] {
  const found: Address[] = []
  for (let at = text.indexOf(name); at !== -1; ) {
    const end = text.indexOf('\n', at)
    const line = text.slice(text.lastIndexOf('\n', at) + 1, end === -1 ? undefined : end)
    const [addressText = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const isMeant = names.some(alias => {
      const host = parseHost(alias)
      return host.ok && host.value === name
    })
    const address = isMeant ? parseAddress(addressText) : undefined
    if (address?.ok) found.push(address.value)
    at = end === -1 ? -1 : text.indexOf(name, end)
  }
  return found
}

function answerOf(records: readonly { readonly address: string; readonly ttl: number }[]): Answer {
  const addresses: Address[] = []
  let ttlMs = MAX_TTL_MS
  for (const { address: text, ttl } of records) {
    const address = parseAddress(text)
    if (address.ok) addresses.push(address.value)
    ttlMs = Math.min(ttlMs, Math.max(ttl, 0) * 1000)
  }
  return { addresses, ttlMs, failure: undefined }
}

function failureOf(error: unknown): Answer {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const isAbsent = code === 'ENOTFOUND' || code === 'ENODATA' || code === 'EBADNAME'
  return { addresses: [], ttlMs: 0, failure: isAbsent ? 'name-not-found' : 'lookup-failed' }
}

/** Alternates IPv6 and IPv4, so that a broken family costs one attempt. A missing answer counts as a failure. */
function merge(answers: readonly Answer[]): Answer {
  const v6 = answers.flatMap(answer => answer.addresses).filter(address => address.includes(':'))
  const v4 = answers.flatMap(answer => answer.addresses).filter(address => !address.includes(':'))
  const addresses: Address[] = []
  for (let i = 0; i < Math.max(v6.length, v4.length); i++)
    for (const address of [v6[i], v4[i]]) if (address !== undefined) addresses.push(address)
  const hasFailed = answers.length < 2 || answers.some(answer => answer.failure === 'lookup-failed')
  return {
    addresses,
    ttlMs: Math.min(MAX_TTL_MS, ...answers.filter(a => a.addresses.length > 0).map(a => a.ttlMs)),
    failure: hasFailed ? 'lookup-failed' : 'name-not-found',
  }
}
