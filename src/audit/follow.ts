import { lstatSync } from 'node:fs'
import { type AuditRecord, LineReader, listSegments, type ReadOptions, readRecords } from './read.ts'

interface FollowOptions extends ReadOptions {
  readonly signal?: AbortSignal
  readonly intervalMs?: number
  /** Selects runs. The default is all. */
  readonly follows?: (run: string) => boolean
}

/** A long history is yielded in batches. */
const MAX_BATCH = 10_000

/**
 * Yields all records, then each new one of any run, until the signal aborts. It polls, because file events get lost on
 * some file systems, and a delay of 250 ms is not noticeable.
 */
export async function* followAudit(dir: string, options: FollowOptions = {}): AsyncGenerator<AuditRecord[]> {
  const { signal, intervalMs = 250, run, follows = () => true } = options
  const readers = new Map<string, LineReader>()
  while (!signal?.aborted) {
    const names = listSegments(dir).filter(
      name => (run === undefined || name.run === run) && follows(name.run),
    )
    let batch: AuditRecord[] = []
    for (const { file } of names) {
      const reader = readers.get(file) ?? new LineReader()
      readers.set(file, reader)
      if (sizeOf(`${dir}/${file}`) <= reader.at) continue
      for (const record of readRecords(dir, file, options, reader)) batch.push(record)
      if (batch.length < MAX_BATCH) continue
      yield batch.sort(byTime)
      batch = []
    }
    if (batch.length > 0) yield batch.sort(byTime)
    const present = new Set(names.map(({ file }) => file))
    for (const file of readers.keys()) if (!present.has(file)) readers.delete(file)
    await new Promise(resolve => setTimeout(resolve, intervalMs))
  }
}

const sizeOf = (path: string): number => lstatSync(path, { throwIfNoEntry: false })?.size ?? 0

/** The sort is stable, so each run keeps its order. */
const byTime = (a: AuditRecord, b: AuditRecord): number => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0)
