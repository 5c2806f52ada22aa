/** Denials, limits and held connections from the audit, as values for a program. */
import type { AuditRecord } from '../audit/read.ts'
import { printable } from '../base/printable.ts'

export interface Denial {
  readonly kind: 'network' | 'file' | 'tool'
  /** `host:port`, a path, or the name of a program. The sandbox chooses it, so it is escaped and cut. */
  readonly target: string
  /** A stable identifier. */
  readonly reason: string
  /** The reason as a sentence. */
  readonly why: string
  /** The command that allows it, for the user on the host. Null when no command does. */
  readonly permission: string | null
  readonly time: string
  /** `command`: this command. `unknown`: this command or another one that ran at the same time. */
  readonly by: 'command' | 'unknown'
}

/** A connection or a request that waits for the user's answer. */
export interface Ask {
  /** `host:port`, or method, `host:port` and path. */
  readonly target: string
  readonly until: string
  /** The command that allows it, for the user on the host. */
  readonly permission: string
}

export interface LimitHit {
  readonly limit: string
  /** The usage and the limit. */
  readonly value: string
  /** What happened: `killed`, `refused` or `throttled`. */
  readonly reason: string
  /** The reason as a sentence. */
  readonly why: string
  /** How the user raises the limit, on the host. */
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
      return { kind: 'network', target: field('raw') ?? 'a lookup', ...rest }
    case 'tool-denied': {
      // The program does not exist, so nothing refused it.
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
  const field = fieldsOf(record)
  const method = field('method')
  const until = String(record['until'])
  if (method === undefined)
    return { target: endpoint(record), until, permission: `pen allow ${endpoint(record)} --session` }
  // Never the whole host. The gateway holds only paths of plain characters.
  const target = `${method} ${endpoint(record)}${field('path') ?? ''}`
  return { target, until, permission: `pen allow '${target}' --session` }
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
