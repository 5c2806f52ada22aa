/** What was refused, from the audit: whom or what it was about, why, and what the user would have to do to allow it. */
import type { AuditRecord } from '../audit/read.ts'
import { printable } from '../base/printable.ts'

export interface Denial {
  readonly kind: 'network' | 'file' | 'tool'
  /** `host:port`, a path, or the name of a program. Of the sandbox's choosing: escaped, and cut where it is long. */
  readonly target: string
  /** A stable word. */
  readonly reason: string
  /** The same in a sentence. */
  readonly why: string
  /** The command by which the user would allow it, on the host; null where nothing would. */
  readonly permission: string | null
  readonly time: string
  /** Whose it was: this command's, or one of several that ran at the time. */
  readonly by: 'command' | 'unknown'
}

/** A connection that waits for a person's answer. */
export interface Ask {
  readonly target: string
  readonly until: string
  /** What the user runs to let it go on. */
  readonly permission: string
}

export interface LimitHit {
  readonly limit: string
  /** What was used, and the bound. */
  readonly value: string
  /** What it came to: `killed`, `refused`, `throttled`. */
  readonly reason: string
  /** The same in a sentence. */
  readonly why: string
  /** How the user raises it, on the host. */
  readonly hint: string | null
}

/** @internal */
export function denialOf(record: AuditRecord, by: Denial['by'] = 'unknown'): Denial | undefined {
  if (record.verdict !== 'deny') return undefined
  const field = fieldsOf(record)
  const rest = {
    reason: field('reason') ?? record.kind,
    why: field('why') ?? field('reason') ?? record.kind,
    permission: field('fix') ?? null,
    time: record.time,
    by,
  }
  switch (record.kind) {
    case 'connection-denied':
    case 'flow-refused':
      return { kind: 'network', target: endpoint(record), ...rest }
    case 'dns-refused':
      return { kind: 'network', target: field('raw') ?? 'a look-up', ...rest }
    case 'tool-denied': {
      // Nobody refused it: it is not there.
      if (rest.reason === 'not-found') return undefined
      const { command } = record
      const program = Array.isArray(command) ? String(command[0]) : ''
      return { kind: 'tool', target: printable(program), ...rest }
    }
    case 'broker-denied':
    case 'file-denied':
    case 'quarantine':
      return { kind: 'file', target: field('path') ?? '', ...rest }
    default:
      return undefined
  }
}

/** @internal */
export function askOf(record: AuditRecord): Ask | undefined {
  if (record.kind !== 'connection-held') return undefined
  const target = endpoint(record)
  return { target, until: String(record['until']), permission: `pen allow ${target} --session` }
}

/** @internal */
export function limitOf(record: AuditRecord): LimitHit | undefined {
  if (record.kind !== 'limit-hit') return undefined
  const field = fieldsOf(record)
  return {
    limit: field('limit') ?? '',
    value: field('value') ?? '',
    reason: field('reason') ?? '',
    why: field('why') ?? `${field('limit') ?? ''}: ${field('value') ?? ''}`,
    hint: field('fix') ?? null,
  }
}

const fieldsOf =
  (record: AuditRecord) =>
  (name: string): string | undefined => {
    const value = record[name]
    return typeof value === 'string' && value !== '' ? printable(value) : undefined
  }

function endpoint(record: AuditRecord): string {
  const field = fieldsOf(record)
  const address = field('address')
  const place = field('name') ?? (address?.includes(':') ? `[${address}]` : address) ?? '?'
  return `${place}:${record['port'] ?? '?'}`
}
