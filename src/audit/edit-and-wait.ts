import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { listSegments } from './read.ts'
import { runningRuns } from './running.ts'

/** Runs look at their configuration four times a second. One that is busier than that is not waited for. */
const PATIENCE_MS = 1000
const GLANCE_MS = 15
/** How a run says that it has seen an edit, or that it will see none any more. */
const SEEN = /"kind":"(policy-changed|policy-edit-refused|run-end)"/

/**
 * Makes an edit of the policy, and waits until the sandboxes that run have taken it up: what a person types next already goes by it.
 */
export async function editAndWait<T>(dir: string, edit: () => Promise<T>): Promise<T> {
  const waiting = new Set(runningRuns(dir))
  if (waiting.size === 0) return await edit()
  const before = new Map(segmentsOf(dir, waiting).map(({ file }) => [file, sizeOf(`${dir}/${file}`)]))
  const result = await edit()
  for (const late = performance.now() + PATIENCE_MS; waiting.size > 0 && performance.now() < late; ) {
    await new Promise(resolve => setTimeout(resolve, GLANCE_MS))
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

/** The beginning of what came since is enough: a run that says more than this meanwhile has seen the edit by then. */
const MOST = 1024 * 1024

function textFrom(path: string, from: number): string {
  return (
    withFile(path, fd => {
      const bytes = Buffer.alloc(Math.min(MOST, Math.max(0, fstatSync(fd).size - from)))
      return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, from))
    }) ?? ''
  )
}

/** Undefined for one that was dropped meanwhile. */
function withFile<T>(path: string, look: (fd: number) => T): T | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    return look(fd)
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
