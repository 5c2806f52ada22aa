/**
 * Hosts of the current project, newest first, for completion. Programs in the sandbox chose the names in the audit, so
 * only names that parse as a host in canonical spelling are used. The time is limited, because the user waits.
 */
import { auditDirectory } from '../../audit/directory.ts'
import { type AuditRecord, listSegments, parseRecord, readLines } from '../../audit/read.ts'
import { readGrants } from '../../config/grants/network-grants.ts'
import { readJson } from '../../config/json/json.ts'
import { valueAt } from '../../config/json/value-at.ts'
import { findLive } from '../../config/layers.ts'
import { findProject } from '../../config/project.ts'
import { parseHost } from '../../policy/network/host.ts'
import { printRule } from '../../policy/network/net-rule.ts'
import { parsePort } from '../../policy/network/port.ts'

const MOST_HOSTS = 50
const MOST_RUNS = 50
const TIME_LIMIT_MS = 150
/** Lines between two checks of the clock. */
const LOOK_EVERY = 256

const audit = (sandbox?: string): string => auditDirectory(findProject(undefined, sandbox).stateDir)

/** Hosts that `pen allow` would allow: refused because no rule covers them, or waiting for approval. No host of a request. */
export const refusedHosts = (): string[] =>
  hostsOf(
    ({ kind, fix, method }) =>
      method === undefined &&
      (kind === 'connection-held' ||
        (kind === 'connection-denied' && typeof fix === 'string' && fix.startsWith('pen allow '))),
  )

/** All hosts that programs connected to by name. */
export const seenHosts = (): string[] =>
  hostsOf(({ kind }) => kind === 'connection-denied' || kind === 'connection-allowed')

export function storedRuns(sandbox: string | undefined): string[] {
  const runs = new Set(listSegments(audit(sandbox)).map(({ run }) => run))
  return [...runs].slice(-MOST_RUNS).reverse()
}

function hostsOf(isWanted: (record: AuditRecord) => boolean): string[] {
  const found = new Set<string>()
  const end = performance.now() + TIME_LIMIT_MS
  const dir = audit()
  for (const { file } of listSegments(dir).reverse()) {
    // In a file the newest record is last. Here it comes first.
    const inFile = new Set<string>()
    let count = 0
    for (const line of readLines(`${dir}/${file}`)) {
      if (++count % LOOK_EVERY === 0 && performance.now() > end) break
      const record = parseRecord(line)
      const host = record !== undefined && isWanted(record) ? endpointOf(record) : undefined
      if (host === undefined) continue
      inFile.delete(host)
      inFile.add(host)
    }
    for (const host of [...inFile].reverse()) found.add(host)
    if (found.size >= MOST_HOSTS || performance.now() > end) break
  }
  return [...found].slice(0, MOST_HOSTS)
}

function endpointOf({ name, port }: AuditRecord): string | undefined {
  if (typeof name !== 'string' || typeof port !== 'number') return undefined
  const host = parseHost(name)
  const number = parsePort(String(port))
  // pen writes canonical names only.
  return host.ok && number.ok && host.value === name ? `${host.value}:${number.value}` : undefined
}

/** Hosts with a temporary rule of `pen allow` or `pen deny`. */
export async function grantedHosts(): Promise<string[]> {
  const grants = await readGrants(findProject().shared.stateDir)
  return [...new Set(grants.map(({ rule }) => printRule(rule)))]
}

/** Hosts with a rule in the live config, as spelled there. */
export function ruledHosts(): string[] {
  const { live } = findLive(findProject())
  if (live === undefined) return []
  const config = readJson(live.bytes, live.file).value
  return ['http', 'tcp', 'deny']
    .flatMap(key => valueAt(config, ['network', key]) ?? [])
    .filter((entry): entry is string => typeof entry === 'string')
}
