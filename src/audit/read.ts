/**
 * Reads the audit. Only pen writes the files, but a crash or a bad disk may damage them. Lines that are not records are
 * reported and skipped. Every text in a record is hostile to a terminal.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { checkDirectory } from './directory.ts'
import type { Verdict } from './event.ts'
import { type SegmentName, segmentsByRun, sortedSegments, startOf } from './segment-name.ts'

/** A record from a file. The listed fields are checked, all others are not. */
export interface AuditRecord {
  readonly v: number
  readonly seq: number
  readonly time: string
  readonly run: string
  readonly kind: string
  readonly verdict: Verdict
  readonly [field: string]: unknown
}

export interface ReadOptions {
  readonly run?: string | undefined
  readonly wanted?: (record: AuditRecord) => boolean
  /** Called for each line that is not a record. */
  readonly onDamage?: (file: string) => void
}

/** More than the longest line that pen writes. */
const MAX_LINE_BYTES = 1024 * 1024
const CHUNK = 64 * 1024

/** Yields the records of all runs by time. Records of one run keep their order. */
export function* readAudit(dir: string, options: ReadOptions = {}): Generator<AuditRecord> {
  const waiting = runsIn(dir, options.run)
  const active: { now: AuditRecord; rest: Iterator<AuditRecord> }[] = []
  const activate = (segments: readonly SegmentName[]): void => {
    const rest = readRun(dir, segments, options)
    const first = rest.next()
    if (!first.done) active.push({ now: first.value, rest })
  }
  for (;;) {
    // Opens a run only when it overlaps with those that are open.
    let next = earliest(active)
    while (waiting[0] !== undefined && (next === undefined || waiting[0].start <= next.now.time)) {
      activate(waiting.shift()?.segments ?? [])
      next = earliest(active)
    }
    if (next === undefined) return
    yield next.now
    const following = next.rest.next()
    if (following.done) active.splice(active.indexOf(next), 1)
    else next.now = following.value
  }
}

function earliest<T extends { now: AuditRecord }>(active: readonly T[]): T | undefined {
  let found: T | undefined
  for (const one of active) if (found === undefined || one.now.time < found.now.time) found = one
  return found
}

const runsIn = (dir: string, only: string | undefined) =>
  [...segmentsByRun(listSegments(dir))]
    .filter(([run]) => only === undefined || run === only)
    .map(([run, segments]) => ({ start: startOf(run), segments }))

export const listSegments = (dir: string): SegmentName[] =>
  checkDirectory(dir) ? sortedSegments(readdirSync(dir)) : []

function* readRun(
  dir: string,
  segments: readonly SegmentName[],
  options: ReadOptions,
): Generator<AuditRecord> {
  for (const { file } of segments) yield* readRecords(dir, file, options)
}

/** The wanted records of one segment that `lines` has not read yet. */
export function* readRecords(
  dir: string,
  file: string,
  { wanted, onDamage }: ReadOptions,
  lines?: LineReader,
): Generator<AuditRecord> {
  for (const line of readLines(`${dir}/${file}`, lines)) {
    const record = parseRecord(line)
    if (record === undefined) onDamage?.(file)
    else if (wanted === undefined || wanted(record)) yield record
  }
}

/** Yields complete lines. Text after the last newline is still being written, or a crash cut it off. */
export function* readLines(path: string, lines = new LineReader()): Generator<string> {
  const fd = openSegment(path)
  if (fd === undefined) return
  try {
    for (let batch = lines.read(fd); batch !== undefined; batch = lines.read(fd)) yield* batch
  } finally {
    closeSync(fd)
  }
}

/** Undefined when the file is gone, or is not a regular file. */
function openSegment(path: string): number | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  try {
    const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    if (fstatSync(fd).isFile()) return fd
    closeSync(fd)
  } catch (error) {
    if (!['ENOENT', 'ELOOP', 'ENXIO'].includes(errnoOf(error) ?? '')) throw error
  }
  return undefined
}

/** Reads a growing file in chunks. Memory is limited by MAX_LINE_BYTES. */
export class LineReader {
  #at: number
  #partial: Buffer = Buffer.alloc(0)
  #skipping: boolean = false

  constructor(at = 0) {
    this.#at = at
  }

  /** The read position. */
  get at(): number {
    return this.#at
  }

  /** Newly complete lines. Undefined at the current end of the file. */
  read(fd: number): string[] | undefined {
    const chunk = Buffer.allocUnsafe(CHUNK)
    const n = readSync(fd, chunk, 0, CHUNK, this.#at)
    if (n === 0) {
      // An incomplete line is read again next time, because a writer on a full disk removes it.
      this.#at -= this.#partial.length
      this.#partial = Buffer.alloc(0)
      return undefined
    }
    this.#at += n
    let bytes = Buffer.concat([this.#partial, chunk.subarray(0, n)])
    const end = bytes.lastIndexOf(10)
    this.#partial = bytes.subarray(end + 1)
    bytes = bytes.subarray(0, Math.max(end, 0))
    if (this.#partial.length > MAX_LINE_BYTES) {
      this.#partial = Buffer.alloc(0)
      this.#skipping = true
    }
    if (end < 0) return []
    const lines = bytes.toString('utf8').split('\n')
    // The rest of an overlong line becomes an empty line, which is reported as damage.
    if (this.#skipping) lines[0] = ''
    this.#skipping = false
    return lines
  }
}

const VERDICTS: readonly unknown[] = ['allow', 'hold', 'deny', 'error', 'note'] satisfies Verdict[]
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export function parseRecord(line: string): AuditRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { v, seq, time, run, kind, verdict } = value as Record<string, unknown>
  const isRecord =
    Number.isInteger(v) &&
    Number.isInteger(seq) &&
    typeof time === 'string' &&
    TIME.test(time) &&
    typeof run === 'string' &&
    typeof kind === 'string' &&
    VERDICTS.includes(verdict)
  return isRecord ? (value as AuditRecord) : undefined
}
