/** The content of the `pen watch` screen, from audit records. A sandbox controls their text and number: sizes are bounded. */
import type { AuditRecord } from '../../audit/read.ts'
import { parseAddress } from '../../policy/network/address.ts'
import { classifyAddress } from '../../policy/network/address-class.ts'
import { HOST_SERVICE } from '../../policy/network/host.ts'
import { plain } from '../render/colour.ts'
import { isBackgroundRefusal, logLine } from '../render/log-line.ts'

/** A refused target of a running sandbox that a rule can allow. */
export interface RefusedTarget {
  readonly key: string
  readonly run: string
  readonly target: string
  readonly count: number
}

/** Connections of one run to the same target that wait for approval. */
export interface HeldTarget extends RefusedTarget {
  /** When the first of them is refused. */
  readonly until: number
}

interface Line {
  readonly verdict: AuditRecord['verdict']
  readonly text: string
}

const MOST_LINES = 500
const MOST_HELD = 1000
const MOST_REFUSED = 200
/** A killed supervisor writes no final record, so entries expire this long after their deadline. */
const SLACK_MS = 3000

export class WatchState {
  readonly totals = {
    allowed: 0,
    refused: 0,
    /** Refused background calls of agents. They get no line. */
    quiet: 0,
    failed: 0,
    limits: 0,
    bytesUp: 0,
    bytesDown: 0,
  }
  /** By connection. */
  readonly #held = new Map<string, Pick<HeldTarget, 'run' | 'target' | 'until'>>()
  /** The newest is last. */
  readonly #refused = new Map<string, RefusedTarget>()
  #lines: Line[] = []

  add(record: AuditRecord): void {
    this.#count(record)
    this.#hold(record)
    this.#refuse(record)
    if (record.kind === 'connection-closed' || isBackgroundRefusal(record)) return
    this.#lines.push({ verdict: record.verdict, text: shortLine(record) })
    if (this.#lines.length > 2 * MOST_LINES) this.#lines = this.#lines.slice(-MOST_LINES)
  }

  /** Oldest first, so that new entries do not move the ones that the user reads. */
  held(now: number): HeldTarget[] {
    const targets = new Map<string, HeldTarget>()
    for (const [id, { run, target, until }] of this.#held) {
      if (until + SLACK_MS < now) {
        this.#held.delete(id)
        continue
      }
      const key = `${run} ${target}`
      const known = targets.get(key)
      if (known === undefined) targets.set(key, { key, run, target, until, count: 1 })
      else targets.set(key, { ...known, until: Math.min(known.until, until), count: known.count + 1 })
    }
    return [...targets.values()]
  }

  /** Newest first. */
  refused(): RefusedTarget[] {
    return [...this.#refused.values()].reverse()
  }

  /** The newest lines, oldest first. */
  lines(count: number): readonly Line[] {
    return count <= 0 ? [] : this.#lines.slice(-count)
  }

  #hold(record: AuditRecord): void {
    const { method = '', path = '' } = record
    const connection = `${record.run} ${String(record['connection'])} `
    const id = `${connection}${String(method)} ${String(path)}`
    if (record.kind === 'connection-held') {
      const target = targetOf(record)
      const until = Date.parse(String(record['until']))
      if (target !== undefined && Number.isFinite(until) && this.#held.size < MOST_HELD)
        this.#held.set(id, { run: record.run, target, until })
    } else if (record.kind === 'request-allowed' || (record.kind === 'connection-denied' && method !== ''))
      this.#held.delete(id)
    else if (record.kind.startsWith('connection-')) {
      for (const other of this.#held.keys()) if (other.startsWith(connection)) this.#held.delete(other)
    } else if (record.kind === 'run-end')
      for (const [other, { run }] of this.#held) if (run === record.run) this.#held.delete(other)
  }

  #refuse(record: AuditRecord): void {
    const { kind, run } = record
    if (kind === 'run-end') {
      for (const [key, other] of this.#refused) if (other.run === run) this.#refused.delete(key)
      return
    }
    const target = targetOf(record)
    if (target === undefined) return
    const key = `refused ${run} ${target}`
    if (kind === 'connection-allowed') this.#refused.delete(key)
    if (kind !== 'connection-denied' || !isOffered(record, target)) return
    const count = (this.#refused.get(key)?.count ?? 0) + 1
    this.#refused.delete(key)
    this.#refused.set(key, { key, run, target, count })
    const [oldest] = this.#refused.keys()
    if (this.#refused.size > MOST_REFUSED && oldest !== undefined) this.#refused.delete(oldest)
  }

  #count(record: AuditRecord): void {
    const { totals } = this
    if (isBackgroundRefusal(record)) totals.quiet++
    if (record.kind === 'connection-allowed') totals.allowed++
    else if (record.verdict === 'deny') totals.refused++
    else if (record.kind === 'connection-failed') totals.failed++
    else if (record.kind === 'limit-hit') totals.limits++
    else if (record.kind === 'connection-closed') {
      totals.bytesUp += Number(record['bytesUp']) || 0
      totals.bytesDown += Number(record['bytesDown']) || 0
    }
  }
}

/** Leaves half of 80 columns for the reason. */
const TARGET_WIDTH = 26

/** Without the date and the fix. Only ASCII, so that each character takes one column. */
function shortLine({ fix: _, ...record }: AuditRecord): string {
  const { name, verdict } = record
  const [time = '', , target = '', ...rest] = logLine(record, plain).slice(11).split(/ {2,}/)
  const text = rest.join(' ').replace('allowed, but not reached', 'not reached')
  const reason = typeof name === 'string' && verdict !== 'allow' ? text.replaceAll(name, 'it') : text
  return `${time} ${verdict.padEnd(5)} ${target.padEnd(TARGET_WIDTH)} ${reason}`.replaceAll(/[^ -~]/g, '?')
}

/**
 * A sandbox could retry a target until the user allows it. So pen does not offer targets of this machine, its network
 * or its cloud, as in `mayBeOffered`.
 */
function isOffered(record: AuditRecord, target: string): boolean {
  const { fix, reason, name, address } = record
  if (
    (fix !== `pen allow ${target}` && fix !== `pen allow '${target}'`) ||
    reason === 'local-name' ||
    isBackgroundRefusal(record)
  )
    return false
  if (typeof name === 'string') return name !== HOST_SERVICE
  const parsed = parseAddress(String(address))
  return parsed.ok && classifyAddress(parsed.value) === 'public'
}

/** The target in the syntax of a rule, of a request with method and path. Undefined if it is no valid rule. */
function targetOf({ name, address, port, method, path }: AuditRecord): string | undefined {
  const place = name ?? address
  if (typeof place !== 'string' || typeof port !== 'number') return undefined
  const text = `${place.includes(':') ? `[${place}]` : place}:${port}`
  if (!/^[a-z0-9_[][a-z0-9_.:[\]-]{2,280}$/.test(text)) return undefined
  if (typeof method !== 'string' || typeof path !== 'string') return text
  const target = `${method} ${text}${path}`
  return /^[A-Z-]{1,32} [^/]+\/[A-Za-z0-9._~/@:+=,-]{0,256}$/.test(target) ? target : undefined
}
