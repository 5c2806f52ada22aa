import { printable, printableJson } from '../base/printable.ts'
import type { AuditEvent, Stamp } from './event.ts'

const RAW_CAP = 256
/** Enough for every decision. Only a hostile sandbox makes longer fields. */
export const MAX_LINE = 4096
const MAX_POLICY_LINE = 256 * 1024
const TEXT_CAP = 256
const LIST_CAP = 32

/**
 * Formats a record as one line of printable text. No field can end the line, forge another one or control a terminal.
 * `raw` is escaped before it is quoted, so that this holds even for a tool that unescapes JSON.
 */
export function toLine(stamp: Stamp, event: AuditEvent): string {
  const record = { ...stamp, ...event, ...('raw' in event && escapeRaw(event.raw)) }
  const line = quote(record)
  if (line.length <= (event.kind === 'run-start' ? MAX_POLICY_LINE : MAX_LINE)) return line
  const short = quote(JSON.parse(JSON.stringify(record, capped)))
  if (short.length <= MAX_LINE) return short
  return quote({ ...stamp, kind: event.kind, truncated: line.length })
}

/** Most records are plain ASCII, and the pattern for hostile characters takes a millisecond to compile. */
function quote(record: object): string {
  const text = JSON.stringify(record)
  return /[^ -~]/.test(text) ? printableJson(record) : text
}

const escapeRaw = (raw: string | undefined): { raw?: string } =>
  raw === undefined ? {} : { raw: printable(raw, RAW_CAP) }

function capped(_key: string, value: unknown): unknown {
  if (typeof value === 'string') return printable(value, TEXT_CAP)
  if (!Array.isArray(value) || value.length <= LIST_CAP) return value
  return [...value.slice(0, LIST_CAP), `… (${value.length})`]
}

const MAX_WORDS = 32
const MAX_WORD_LENGTH = 200

/** Shortens a command for a record, because it may contain whole scripts. A cut shows the real length. */
export const shortCommand = (argv: readonly string[]): string[] => [
  ...argv
    .slice(0, MAX_WORDS)
    .map(word =>
      word.length > MAX_WORD_LENGTH ? `${word.slice(0, MAX_WORD_LENGTH)}… (${word.length})` : word,
    ),
  ...(argv.length > MAX_WORDS ? [`… (${argv.length})`] : []),
]
