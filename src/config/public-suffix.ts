import type { Host } from '../policy/network/host.ts'
import { everySuffixIsPublic, type IsPublicSuffix } from '../policy/network/net-target.ts'

/**
 * The test for public suffixes that these entries need. Loading the list takes longer than the rest of a start (4 ms), so it
 * is loaded only for an entry with a star. Other entries never use it.
 */
export async function publicSuffixTest(entries: Iterable<unknown>): Promise<IsPublicSuffix> {
  for (const entry of entries)
    if (typeof entry === 'string' && entry.includes('*')) return await loadPublicSuffixes()
  return everySuffixIsPublic
}

/** Only the ICANN part of the list: `*.githubusercontent.com` has one owner, `*.co.uk` has many. */
async function loadPublicSuffixes(): Promise<IsPublicSuffix> {
  const { parse } = await import('tldts-icann')
  return (name: Host) => {
    const found = parse(name, { extractHostname: false, validateHostname: false, detectIp: false })
    return found.publicSuffix === name
  }
}
