/** Shows the smallest change of the live config that allows what a run connected to. Never applies it. */
import { auditDirectory } from '../../audit/directory.ts'
import { type AuditRecord, listSegments, readAudit } from '../../audit/read.ts'
import type { Millis } from '../../base/quantity.ts'
import { resolveGroup } from '../../config/groups.ts'
import { loadPolicy } from '../../config/load.ts'
import type { Project } from '../../config/project.ts'
import { publicSuffixTest } from '../../config/public-suffix.ts'
import { parseAddress } from '../../policy/network/address.ts'
import { GROUPS } from '../../policy/network/groups.ts'
import { parseHost } from '../../policy/network/host.ts'
import { covers } from '../../policy/network/net-rule.ts'
import { parsePort } from '../../policy/network/port.ts'
import { type DialAttempt, type Suggestion, suggest } from '../../policy/network/suggest.ts'
import { suggestionData, suggestionText } from '../render/suggestion-text.ts'
import type { Terminal } from './terminal.ts'

export interface Learned {
  readonly suggestion: Suggestion
  /** Groups that cover some of the suggested hosts. */
  readonly groups: readonly { readonly name: string; readonly covers: number }[]
  /** The groups of the policy. */
  readonly had: readonly string[]
  /** Whether there were too many hosts to show. */
  readonly isCut: boolean
}

interface Request {
  readonly run: string | undefined
  readonly since: Millis | undefined
  readonly json: boolean
}

export async function showSuggestion(
  project: Project,
  { run, since, json }: Request,
  terminal: Terminal,
): Promise<void> {
  const from = since === undefined ? '' : new Date(Date.now() - since).toISOString()
  const learned = await learn(project, run, from)
  if (json) terminal.printJson({ ...suggestionData(learned), truncated: learned.isCut })
  else terminal.print(suggestionText(learned, terminal.paint))
  if (learned.isCut && !json) terminal.note(CUT)
}

/** Shows the suggestion for this process's own run, on stderr, because stdout belongs to the command. */
export async function noteLearned(project: Project, terminal: Terminal): Promise<void> {
  const run = listSegments(auditDirectory(project.stateDir)).findLast(({ pid }) => pid === process.pid)?.run
  if (run === undefined) return
  const learned = await learn(project, run, '')
  terminal.note(suggestionText(learned, terminal.paintNote))
  if (learned.isCut) terminal.note(CUT)
}

async function learn(project: Project, run: string | undefined, from: string): Promise<Learned> {
  const { wanted, isCut } = wantedIn(
    readAudit(auditDirectory(project.stateDir), { run, wanted: ({ time }) => time >= from }),
  )
  // Temporary grants and flags do not count: the next run does not have them.
  const options = { flags: {}, offline: false, allowUserExpansion: false, grants: 'none' } as const
  const { policy } = await loadPolicy(project, options)
  const suggestion = suggest(policy.network, wanted, await publicSuffixTest(['*']))
  return {
    suggestion,
    groups: await groupOffers(project, suggestion, policy.network.groups),
    had: policy.network.groups,
    isCut,
  }
}

/** Reasons that a rule can change. No rule allows a TLS name that differs from the requested one. */
const FIXABLE: ReadonlySet<unknown> = new Set([
  'not-allowed',
  'port-not-allowed',
  'literal-not-allowed',
  'address-not-allowed',
  'local-name',
  'denied-by-rule',
  'not-answered',
  'hung-up',
  'too-many-held',
  'request-not-allowed',
])
/** Longer lists are not useful. */
const MOST_TARGETS = 200
/** Always shown, because a program could hide a host behind many others. */
const CUT = `only the first ${MOST_TARGETS} hosts are shown; see the rest with pen logs, or use --run and --since`

/** Parses names from the audit again, because programs in the sandbox chose them. */
function wantedIn(records: Iterable<AuditRecord>): { wanted: DialAttempt[]; isCut: boolean } {
  const found = new Map<string, DialAttempt>()
  let isCut: boolean = false
  /** Hosts with rules about requests: their requests are suggested, not the host. */
  const judged = new Set<string>()
  for (const record of records) {
    const { kind, name, address, port: number, reason } = record
    const request = requestOf(record)
    const isUsed = kind === 'connection-allowed' || (kind === 'request-allowed' && request !== undefined)
    if (!isUsed && !(kind === 'connection-denied' && FIXABLE.has(reason))) continue
    const port = parsePort(String(number))
    const host = typeof name === 'string' ? parseHost(name) : undefined
    const literal = host === undefined && typeof address === 'string' ? parseAddress(address) : undefined
    const to = host?.ok ? { name: host.value } : literal?.ok ? { address: literal.value } : undefined
    if (!port.ok || to === undefined) continue
    const place = `${Object.values(to)[0]} ${port.value}`
    if (request !== undefined) judged.add(place)
    const key = request === undefined ? place : `${place} ${request.method} ${request.path}`
    const known = found.get(key)
    if (known !== undefined || found.size < MOST_TARGETS)
      found.set(key, { to, port: port.value, count: (known?.count ?? 0) + 1, ...(request && { request }) })
    else isCut = true
  }
  for (const place of judged) found.delete(place)
  return { wanted: [...found.values()], isCut }
}

/** A request that a rule about requests allowed or refused. Undefined for others, such as those with a secret alone. */
function requestOf({ kind, method, path, rule }: AuditRecord): DialAttempt['request'] {
  if (typeof method !== 'string' || typeof path !== 'string' || !/^[A-Z-]{1,32}$/.test(method))
    return undefined
  const isByRequest = kind !== 'request-allowed' || (typeof rule === 'string' && /[ /]/.test(rule))
  return isByRequest ? { method, path } : undefined
}

async function groupOffers(
  project: Project,
  { add }: Suggestion,
  had: readonly string[],
): Promise<Learned['groups']> {
  if (add.length === 0) return []
  const { home, state, workspace } = project.world
  const offers = Object.keys(GROUPS)
    .filter(name => !had.includes(name))
    .map(async name => {
      const context = { home, writable: [workspace], cacheDir: `${state}/cache` }
      // A package manager that is missing or fails covers no hosts.
      const rules = await resolveGroup(name, context).then(
        group => group.rules,
        () => [],
      )
      return { name, covers: add.filter(({ rule }) => rules.some(other => covers(other.rule, rule))).length }
    })
  return (await Promise.all(offers)).filter(offer => offer.covers > 0)
}
