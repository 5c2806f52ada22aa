import { ensureDirectory } from './directory.ts'
import {
  AUDIT_VERSION,
  type AuditEvent,
  type AuditEventInput,
  type AuditSink,
  type Stamp,
  VERDICTS,
} from './event.ts'
import { MAX_LINE, toLine } from './line.ts'
import { BOUNDS, type Bounds, prune, unlinkIfThere } from './prune.ts'
import { Segment } from './segment.ts'
import { newRunId, segmentFile } from './segment-name.ts'
import { Tally } from './tally.ts'

interface AuditOptions {
  readonly sandbox: string
  readonly run?: string
  /** Size limit of one segment. */
  readonly maxBytes?: number
  /** Segments of one run, at least 2. The first half is kept, the rest is a ring of the newest. */
  readonly keep?: number
  readonly bounds?: Bounds
  /** Marks every record of a run in the soft backend. */
  readonly soft?: boolean
}

/** A run prunes old runs after each written MiB, and some runs prune at their start. */
const PRUNE_EVERY = 1024 * 1024
const PRUNE_CHANCE = 1 / 16
/** Every segment keeps room for the longest line and two `dropped` records. */
const RESERVE = 3 * MAX_LINE

/** The audit of one run. Writes nothing to disk before the first record. */
export class Audit implements AuditSink {
  readonly run: string
  readonly #dir: string
  readonly #options: Required<AuditOptions>
  #segment: Segment | undefined
  #index = -1
  #seq = 0
  #sincePrune = 0
  readonly #all = new Tally()
  /** By index, for the segments in the ring. */
  readonly #tallies = new Map<number, Tally>()
  readonly #dropped = new Tally()
  #unwritten = new Tally()
  #hasDropped: boolean = false

  constructor(dir: string, options: AuditOptions) {
    this.run = options.run ?? newRunId()
    this.#dir = dir
    this.#options = {
      maxBytes: 16 * 1024 * 1024,
      keep: 4,
      bounds: BOUNDS,
      soft: false,
      run: this.run,
      ...options,
    }
  }

  /** Throws STATE when the record could not be written. Then the caller must not act. */
  record(event: AuditEventInput): void {
    try {
      const segment = this.#segmentWithRoom()
      this.#recordLosses(segment)
      this.#write(segment, event.kind === 'run-end' ? { ...event, counts: this.#all.kinds() } : event)
    } catch (error) {
      this.#unwritten.add(event)
      throw error
    }
  }

  close(): void {
    this.#segment?.close()
    this.#segment = undefined
  }

  #segmentWithRoom(): Segment {
    const { maxBytes, bounds } = this.#options
    const present = this.#segment
    if (present === undefined) {
      ensureDirectory(this.#dir)
      if (Math.random() < PRUNE_CHANCE) prune(this.#dir, bounds)
      return this.#next()
    }
    if (this.#sincePrune >= PRUNE_EVERY) {
      this.#sincePrune = 0
      prune(this.#dir, bounds)
    }
    return present.size + RESERVE <= maxBytes ? present : this.#next()
  }

  #next(): Segment {
    const { keep } = this.#options
    const index = this.#index + 1
    const next = new Segment(this.#pathOf(index))
    this.close()
    this.#segment = next
    this.#index = index
    const head = keep >> 1
    if (index >= head) this.#tallies.set(index, new Tally())
    if (index >= keep) this.#drop(index - (keep - head))
    return next
  }

  #drop(index: number): void {
    const tally = this.#tallies.get(index)
    if (tally === undefined) return
    this.#tallies.delete(index)
    this.#dropped.merge(tally)
    this.#hasDropped = true
    unlinkIfThere(this.#pathOf(index))
  }

  /** Writes records about lost records before anything else. */
  #recordLosses(segment: Segment): void {
    if (this.#hasDropped) this.#write(segment, this.#dropped.asDropped('full'))
    this.#hasDropped = false
    if (this.#unwritten.count > 0) this.#write(segment, this.#unwritten.asDropped('not-written'))
    this.#unwritten = new Tally()
  }

  #write(segment: Segment, event: AuditEvent): void {
    const seq = this.#seq + 1
    const { sandbox, soft } = this.#options
    const stamp: Stamp = {
      v: AUDIT_VERSION,
      seq,
      time: new Date().toISOString(),
      sandbox,
      run: this.run,
      verdict: VERDICTS[event.kind],
      ...(soft && { soft: true }),
    }
    const line = toLine(stamp, event)
    segment.append(line)
    this.#seq = seq
    this.#sincePrune += line.length
    this.#all.add(event)
    this.#tallies.get(this.#index)?.add(event, seq)
  }

  #pathOf(index: number): string {
    return `${this.#dir}/${segmentFile(this.run, process.pid, index)}`
  }
}
