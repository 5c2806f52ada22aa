import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { listSegments } from './read.ts'
import { runningRuns } from './running.ts'

/** Runs check their configuration four times a second. A run that takes longer is not waited for. */
const TIMEOUT_MS = 1000
const POLL_MS = 15
/** Records that show that a run has applied or refused the edit, or has ended. */
const SEEN = /"kind":"(policy-changed|policy-edit-refused|run-end)"/

/** Edits the policy and waits until the running sandboxes have applied it, so that it holds for the next command. */
export async function editAndWait<T>(dir: string, edit: () => Promise<T>): Promise<T> {
  const waiting = new Set(runningRuns(dir))
  if (waiting.size === 0) return await edit()
  const before = new Map(segmentsOf(dir, waiting).map(({ file }) => [file, sizeOf(`${dir}/${file}`)]))
  const result = await edit()
  for (const deadline = performance.now() + TIMEOUT_MS; waiting.size > 0 && performance.now() < deadline; ) {
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
    for (const { run, file } of segmentsOf(dir, waiting))
      if (SEEN.test(textFrom(`${dir}/${file}`, before.get(file) ?? 0))) waiting.delete(run)
  }
  return result
}

const segmentsOf = (dir: string, runs: ReadonlySet<string>) =>
  listSegments(dir).filter(({ run }) => runs.has(run))

function sizeOf(path: string): number {
  return withFile(path, fd => fstatSync(fd).size) ?? 0
}

/** Enough new text to contain the record. A run that writes more has seen the edit by then. */
const MAX_READ = 1024 * 1024

function textFrom(path: string, from: number): string {
  return (
    withFile(path, fd => {
      const bytes = Buffer.alloc(Math.min(MAX_READ, Math.max(0, fstatSync(fd).size - from)))
      return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, from))
    }) ?? ''
  )
}

/** Undefined when the file was dropped meanwhile. */
function withFile<T>(path: string, read: (fd: number) => T): T | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    return read(fd)
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
