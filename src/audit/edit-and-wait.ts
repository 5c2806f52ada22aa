import { lstatSync } from 'node:fs'
import { LineReader, listSegments, readRecords } from './read.ts'
import { runningRuns } from './running.ts'

/** Runs check their configuration four times a second. A run that takes longer is not waited for. */
const TIMEOUT_MS = 1000
const POLL_MS = 15
/** Records that show that a run has applied or refused the edit, or has ended. */
const SEEN = ['policy-changed', 'policy-edit-refused', 'run-end']

/** Edits the policy and waits until the sandboxes that run, with their audits in `dirs`, have applied it, so that it holds for the next command. */
export async function editAndWait<T>(dirs: readonly string[], edit: () => Promise<T>): Promise<T> {
  const waiting = new Set(dirs.flatMap(runningRuns))
  if (waiting.size === 0) return await edit()
  const segments = () =>
    dirs.flatMap(dir =>
      listSegments(dir).flatMap(({ run, file }) => (waiting.has(run) ? [{ dir, run, file }] : [])),
    )
  const readers = new Map(
    segments().map(({ dir, file }) => {
      const size = lstatSync(`${dir}/${file}`, { throwIfNoEntry: false })?.size
      return [file, new LineReader(size)]
    }),
  )
  const result = await edit()
  for (const deadline = performance.now() + TIMEOUT_MS; waiting.size > 0 && performance.now() < deadline; ) {
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
    for (const { dir, run, file } of segments()) {
      const reader = readers.get(file) ?? new LineReader()
      readers.set(file, reader)
      for (const { kind } of readRecords(dir, file, {}, reader)) if (SEEN.includes(kind)) waiting.delete(run)
    }
  }
  return result
}
