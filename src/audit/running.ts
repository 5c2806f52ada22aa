import { isAlive } from './prune.ts'
import { listSegments, parseRecord, readLines } from './read.ts'
import { type SegmentName, segmentsByRun } from './segment-name.ts'

/**
 * Runs that have not ended, newest first. A reused pid can make a killed run look alive. That is harmless, because a grant
 * to an ended run has no effect.
 */
export const runningRuns = (dir: string): string[] => activeRuns(dir).map(({ run }) => run)

/** The supervisor processes of these runs. */
export const runningPids = (dir: string): number[] => activeRuns(dir).map(({ pid }) => pid)

function activeRuns(dir: string): SegmentName[] {
  const newest = [...segmentsByRun(listSegments(dir)).values()].flatMap(segments => segments.slice(-1))
  return newest.reverse().filter(({ pid, file }) => isAlive(pid) && !hasEnded(`${dir}/${file}`))
}

function hasEnded(path: string): boolean {
  let last = ''
  for (const line of readLines(path)) last = line
  // A cleanup that fails is recorded at the end, on either side of `run-end`.
  return ['run-end', 'cleanup-failed'].includes(parseRecord(last)?.kind ?? '')
}
