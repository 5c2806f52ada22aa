import type { Host } from '../policy/network/host.ts'
import { everySuffixIsPublic, type IsPublicSuffix } from '../policy/network/net-target.ts'

/**
 * The test for public suffixes that these entries need. The list costs more to load than all of pen's start
 * (measured: 4 ms), so it is loaded only when an entry has a star; without one the answer is never used.
 */
export async function publicSuffixTest(entries: Iterable<unknown>): Promise<IsPublicSuffix> {
  for (const entry of entries)
    if (typeof entry === 'string' && entry.includes('*')) return await loadPublicSuffixes()
  return everySuffixIsPublic
}

/** Only the ICANN part of the list: `*.githubusercontent.com` belongs to one owner, `*.co.uk` to nobody. */
export async function loadPublicSuffixes(): Promise<IsPublicSuffix> {
  const { parse } = await import('tldts-icann')
  return (name: Host) => {
    const found = parse(name, { extractHostname: false, validateHostname: false, detectIp: false })
    return found.publicSuffix === name
  }
}
