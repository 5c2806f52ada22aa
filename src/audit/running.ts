import { isAlive } from './prune.ts'
import { listSegments, parseRecord, readLines } from './read.ts'

/**
 * Runs that have not ended, newest first. A reused pid can make a killed run look alive. That is harmless, because a grant
 * to an ended run has no effect.
 */
export const runningRuns = (dir: string): string[] => activeRuns(dir).map(({ run }) => run)

/** The supervisor processes of these runs. */
export const runningPids = (dir: string): number[] => activeRuns(dir).map(({ pid }) => pid)

function activeRuns(dir: string): { readonly run: string; readonly pid: number }[] {
  const newest = new Map<string, { readonly pid: number; readonly file: string }>()
  for (const { run, pid, file } of listSegments(dir)) newest.set(run, { pid, file })
  return [...newest]
    .reverse()
    .filter(([, { pid, file }]) => isAlive(pid) && !hasEnded(`${dir}/${file}`))
    .map(([run, { pid }]) => ({ run, pid }))
}

function hasEnded(path: string): boolean {
  let last = ''
  for (const line of readLines(path)) last = line
  // A cleanup that fails is recorded at the end, on either side of `run-end`.
  return ['run-end', 'cleanup-failed'].includes(parseRecord(last)?.kind ?? '')
}
