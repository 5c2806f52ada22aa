/** File names of the audit. A run id sorts by its start. The pid shows whether the writer may still run. */

export interface SegmentName {
  readonly file: string
  readonly run: string
  readonly pid: number
  readonly segment: number
}

const RUN_ID = /^(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})(\d{2})-[0-9a-f]{6}$/
const SEGMENT = /^(\d{8}-\d{6}-[0-9a-f]{6})\.([1-9]\d{0,9})\.(0|[1-9]\d{0,8})\.jsonl$/

/** `20260102-030405-1a2b3c`. The random part is not a secret. It separates runs of the same second. */
export function newRunId(now = new Date()): string {
  const [day = '', clock = ''] = now
    .toISOString()
    .slice(0, 19)
    .replaceAll('-', '')
    .replaceAll(':', '')
    .split('T')
  const random = Math.floor(Math.random() * 0x1000000)
  return `${day}-${clock}-${random.toString(16).padStart(6, '0')}`
}

export const isRunId = (name: string): boolean => RUN_ID.test(name)

/** The start of the run, to the second, in the time format of records. */
export const startOf = (run: string): string => run.replace(RUN_ID, '$1-$2-$3T$4:$5:$6.000Z')

export const segmentFile = (run: string, pid: number, segment: number): string =>
  `${run}.${pid}.${segment}.jsonl`

/** Undefined for other files in the directory. */
export function parseSegmentName(file: string): SegmentName | undefined {
  const [, run, pid, segment] = SEGMENT.exec(file) ?? []
  return run === undefined ? undefined : { file, run, pid: Number(pid), segment: Number(segment) }
}

/** The segments of each run, oldest run first. `names` are sorted. */
export function segmentsByRun(names: readonly SegmentName[]): Map<string, SegmentName[]> {
  const runs = new Map<string, SegmentName[]>()
  for (const name of names) runs.set(name.run, [...(runs.get(name.run) ?? []), name])
  return runs
}

/** Sorts by run, oldest first, then by segment. */
export function sortedSegments(files: readonly string[]): SegmentName[] {
  return files
    .map(parseSegmentName)
    .filter(name => name !== undefined)
    .sort((a, b) => (a.run < b.run ? -1 : a.run > b.run ? 1 : a.segment - b.segment))
}
