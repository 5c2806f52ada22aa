/**
 * Hosts of the current project, for completion. Names in the audit were chosen by programs in a sandbox: only those are taken
 * that parse as a host in its one spelling. Reads only, newest first, and not for long: a person waits.
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
/** Lines between two looks at the clock. */
const LOOK_EVERY = 256

const audit = (): string => auditDirectory(findProject().stateDir)

/** What `pen allow` would open: refused because no rule names it, or waiting for an answer. */
export const refusedHosts = (): string[] =>
  hostsOf(
    ({ kind, fix }) =>
      kind === 'connection-held' ||
      (kind === 'connection-denied' && typeof fix === 'string' && fix.startsWith('pen allow ')),
  )

/** Everything that was dialled by name. */
export const seenHosts = (): string[] =>
  hostsOf(({ kind }) => kind === 'connection-denied' || kind === 'connection-allowed')

export function keptRuns(): string[] {
  const runs = new Set(listSegments(audit()).map(({ run }) => run))
  return [...runs].slice(-MOST_RUNS).reverse()
}

function hostsOf(isWanted: (record: AuditRecord) => boolean): string[] {
  const found = new Set<string>()
  const end = performance.now() + TIME_LIMIT_MS
  const dir = audit()
  for (const { file } of listSegments(dir).reverse()) {
    // The newest stands last in its file, and comes first here.
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
  // Canonical already, or it was not pen that wrote it.
  return host.ok && number.ok && host.value === name ? `${host.value}:${number.value}` : undefined
}

/** What `pen allow` and `pen deny` said for a while, and that is not over. */
export async function grantedHosts(): Promise<string[]> {
  const grants = await readGrants(findProject().stateDir)
  return [...new Set(grants.map(({ rule }) => printRule(rule)))]
}

/** Entries that `pen allow` and `pen deny` made, as they stand in the live config. */
export function ruledHosts(): string[] {
  const { live } = findLive(findProject())
  if (live === undefined) return []
  const config = readJson(live.bytes, live.file).value
  return ['http', 'tcp', 'deny']
    .flatMap(key => valueAt(config, ['network', key]) ?? [])
    .filter((entry): entry is string => typeof entry === 'string')
}
