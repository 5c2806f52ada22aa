/**
 * Follows the audit of one run. The supervisor writes a record before its decision takes effect, so after the end of a command all its
 * denials are in the file. The library reads the files instead of a second stream, because two streams would race.
 */
import { auditDirectory } from '../audit/directory.ts'
import { type AuditRecord, LineReader, listSegments, readRecords } from '../audit/read.ts'
import { FILE_MODE } from '../protocol/file-order.ts'

const POLL_MS = 50
/** How many records stay in memory for commands that still run. Denials beyond it are counted. */
const MAX_RECORDS = 2000
const MAX_LIMIT_HITS = 100

type Listener = (record: AuditRecord) => void

const IGNORE: Listener = () => undefined

/** A record, and the numbers of the commands that ran when it was written. */
export interface TailRecord {
  readonly record: AuditRecord
  readonly running: readonly number[]
}

export class AuditTail {
  readonly #dir: string
  readonly #run: string
  readonly #readers = new Map<string, LineReader>()
  #listener = IGNORE
  #records: TailRecord[] = []
  /** Sequence numbers of denials that were dropped from memory. */
  readonly #droppedDenials: number[] = []
  #running: readonly number[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(stateDir: string, run: string) {
    this.#dir = auditDirectory(stateDir)
    this.#run = run
    this.poll()
    this.#records = []
  }

  /** Reads the records that were written since the last poll. */
  poll(): void {
    for (const { file, run } of listSegments(this.#dir)) {
      if (run !== this.#run) continue
      const reader = this.#readers.get(file) ?? new LineReader()
      this.#readers.set(file, reader)
      for (const record of readRecords(this.#dir, file, {}, reader)) this.#add(record)
    }
  }

  /** The number of the last record, for `since`. */
  mark(): number {
    this.poll()
    return this.#records.at(-1)?.record.seq ?? 0
  }

  since(mark: number): readonly TailRecord[] {
    this.poll()
    return this.#records.filter(({ record }) => record.seq > mark)
  }

  /** How many denials after the mark were dropped from memory, of all commands. */
  dropped(mark: number): number {
    return this.#droppedDenials.filter(seq => seq > mark).length
  }

  /** Calls the listener for each new record, until `close()`. The timer keeps no program alive. */
  listen(listener: Listener): void {
    this.#listener = listener
    this.#timer = setInterval(() => this.pollQuietly(), POLL_MS).unref()
  }

  /** Waits for the first matching record after the mark. Undefined after the timeout. */
  async until(
    mark: number,
    matches: (record: AuditRecord) => boolean,
    timeoutMs: number,
  ): Promise<AuditRecord | undefined> {
    for (const deadline = performance.now() + timeoutMs; ; await pause()) {
      const found = this.since(mark).find(({ record }) => matches(record))?.record
      if (found !== undefined || performance.now() > deadline) return found
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#listener = IGNORE
  }

  /** `pen rm` may remove the files meanwhile: the tail then polls no more. */
  pollQuietly(): void {
    try {
      this.poll()
    } catch {
      clearInterval(this.#timer)
    }
  }

  #add(record: AuditRecord): void {
    this.#trackRunning(record)
    this.#records.push({ record, running: this.#running })
    if (this.#records.length > MAX_RECORDS) this.#drop(MAX_RECORDS / 2)
    this.#listener(record)
  }

  /** Limit hits stay: a command that a limit ended looks for the hit at its end. */
  #drop(count: number): void {
    const dropped = this.#records.splice(0, count)
    for (const { record } of dropped) if (record.verdict === 'deny') this.#droppedDenials.push(record.seq)
    this.#records.unshift(
      ...dropped.filter(({ record }) => record.kind === 'limit-hit').slice(-MAX_LIMIT_HITS),
    )
  }

  /** Tracks the running commands. pen's file tool is left out: it opens no connection and starts no program. */
  #trackRunning({ kind, execution, command }: AuditRecord): void {
    if (typeof execution !== 'number') return
    if (kind === 'exec-end') this.#running = this.#running.filter(number => number !== execution)
    else if (kind === 'exec-start' && !(Array.isArray(command) && command[1] === FILE_MODE))
      this.#running = [...this.#running, execution]
  }
}

const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, POLL_MS))
