import { lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { type SegmentName, segmentsByRun, sortedSegments } from './segment-name.ts'

export interface Bounds {
  readonly maxRuns: number
  readonly maxTotalBytes: number
}

export const BOUNDS: Bounds = { maxRuns: 256, maxTotalBytes: 256 * 1024 * 1024 }

/**
 * Removes the oldest runs until the rest is within the limits. Runs that are still written stay. A sandbox cannot use
 * this to erase earlier runs, because it cannot start runs and each run has its own size limit.
 */
export function prune(dir: string, { maxRuns, maxTotalBytes }: Bounds = BOUNDS): void {
  const sizeOf = ({ file }: SegmentName) => lstatSync(`${dir}/${file}`, { throwIfNoEntry: false })?.size ?? 0
  const runs = [...segmentsByRun(sortedSegments(readdirSync(dir))).values()].map(files => ({
    files,
    bytes: files.reduce((sum, segment) => sum + sizeOf(segment), 0),
  }))
  let count = runs.length
  let total = runs.reduce((sum, { bytes }) => sum + bytes, 0)
  for (const { files, bytes } of runs) {
    if (count <= maxRuns && total <= maxTotalBytes) return
    if (files.some(({ pid }) => isAlive(pid))) continue
    for (const { file } of files) unlinkIfThere(`${dir}/${file}`)
    count--
    total -= bytes
  }
}

/** Another process may prune at the same time. */
export function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
}

/** A reused pid keeps a file longer than needed, never shorter. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}
