/**
 * The audit of one run as it grows. The supervisor writes a record before its decision takes effect: whoever looks after a command has
 * ended finds all that was refused to it. Files are read instead of a stream, because two streams would race.
 */
import { lstatSync } from 'node:fs'
import { auditDirectory } from '../audit/directory.ts'
import { type AuditRecord, LineReader, listSegments, parseRecord, readLines } from '../audit/read.ts'
import { FILE_MODE } from '../protocol/file-order.ts'

const LOOK_MS = 50
/** What is kept for commands that still run. A run that fills more has other troubles than a list of them. */
const MOST_KEPT = 2000

export type Listener = (record: AuditRecord) => void

/** A record, and the commands that ran when it was written. */
export interface Kept {
  readonly record: AuditRecord
  readonly running: readonly number[]
}

export class AuditTail {
  readonly #dir: string
  readonly #run: string
  readonly #readers = new Map<string, LineReader>()
  readonly #listeners = new Set<Listener>()
  #kept: Kept[] = []
  #running: readonly number[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(stateDir: string, run: string) {
    this.#dir = auditDirectory(stateDir)
    this.#run = run
    this.look()
    this.#kept = []
  }

  /** Takes up what was written since the last look. */
  look(): void {
    for (const { file, run } of listSegments(this.#dir)) {
      if (run !== this.#run) continue
      const reader = this.#readers.get(file) ?? new LineReader()
      this.#readers.set(file, reader)
      const path = `${this.#dir}/${file}`
      const size = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
      if (size <= reader.at) continue
      for (const line of readLines(path, reader)) {
        const record = parseRecord(line)
        if (record !== undefined) this.#take(record)
      }
    }
  }

  /** The number of the last record so far: a mark for `since`. */
  mark(): number {
    this.look()
    return this.#kept.at(-1)?.record.seq ?? 0
  }

  since(mark: number): readonly Kept[] {
    this.look()
    return this.#kept.filter(({ record }) => record.seq > mark)
  }

  /** Hears each new record, until the function that is returned is called. It keeps no program alive. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    this.#timer ??= setInterval(() => this.lookQuietly(), LOOK_MS).unref()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** The first record that is wanted, from the mark on; undefined when its time is over. */
  async until(
    mark: number,
    wanted: (record: AuditRecord) => boolean,
    patienceMs: number,
  ): Promise<AuditRecord | undefined> {
    for (const late = performance.now() + patienceMs; ; await pause()) {
      const found = this.since(mark).find(({ record }) => wanted(record))?.record
      if (found !== undefined || performance.now() > late) return found
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** State that is removed meanwhile, by `pen rm`, is the end of it. */
  lookQuietly(): void {
    try {
      this.look()
    } catch {
      this.close()
    }
  }

  #take(record: AuditRecord): void {
    this.#count(record)
    this.#kept.push({ record, running: this.#running })
    if (this.#kept.length > MOST_KEPT) this.#kept = this.#kept.slice(MOST_KEPT / 2)
    for (const listener of this.#listeners) listener(record)
  }

  /** pen's own file tool connects to nothing and starts nothing: it makes no refusal doubtful. */
  #count({ kind, execution, command }: AuditRecord): void {
    if (typeof execution !== 'number') return
    if (kind === 'exec-end') this.#running = this.#running.filter(number => number !== execution)
    else if (kind === 'exec-start' && !(Array.isArray(command) && command[1] === FILE_MODE))
      this.#running = [...this.#running, execution]
  }
}

const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, LOOK_MS))
