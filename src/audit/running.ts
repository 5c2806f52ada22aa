import { listSegments, parseRecord, readLines } from './read.ts'

/**
 * Runs that have begun and not ended, newest first. A process that got the number of one that was killed makes it look as if
 * it went on: harmless, because what is granted to a run that is over is granted to nobody.
 */
export const runningRuns = (dir: string): string[] => goingOn(dir).map(({ run }) => run)

/** Their processes. */
export const runningPids = (dir: string): number[] => goingOn(dir).map(({ pid }) => pid)

function goingOn(dir: string): { readonly run: string; readonly pid: number }[] {
  const newest = new Map<string, { readonly pid: number; readonly file: string }>()
  for (const { run, pid, file } of listSegments(dir)) newest.set(run, { pid, file })
  return [...newest]
    .reverse()
    .filter(([, { pid, file }]) => isAlive(pid) && !hasEnded(`${dir}/${file}`))
    .map(([run, { pid }]) => ({ run, pid }))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

function hasEnded(path: string): boolean {
  let last = ''
  for (const line of readLines(path)) last = line
  // A cleanup that fails is recorded at the end, on either side of `run-end`.
  return ['run-end', 'cleanup-failed'].includes(parseRecord(last)?.kind ?? '')
}
