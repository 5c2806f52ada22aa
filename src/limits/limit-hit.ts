/** A limit that a sandbox reached: one typed event, whether the kernel or pen enforced it. */
import { type Bytes, MAX_MILLIS, type Millis, showBytes, showMillis } from '../base/quantity.ts'
import type { Limits } from '../policy/policy.ts'

type LimitName = keyof Limits

/** The effect of the limit. Only `killed` ended the sandbox. */
type Consequence = 'killed' | 'refused' | 'throttled'

export interface LimitHit {
  readonly limit: LimitName
  readonly what: Consequence
  /** In the limit's unit: bytes, processes, CPUs, milliseconds. The last measured value, which may exceed the limit. */
  readonly used: number
  readonly bound: number
  /** How often a request was refused, or how many milliseconds the sandbox was throttled. */
  readonly amount: number
  /** Details, in pen's own words. */
  readonly note?: string
}

const GIB = 2 ** 30
const MIB = 2 ** 20

const size = (bytes: number): string =>
  bytes >= GIB
    ? `${+(bytes / GIB).toFixed(2)} GiB`
    : bytes >= MIB
      ? `${+(bytes / MIB).toFixed(1)} MiB`
      : `${Math.ceil(bytes / 1024)} KiB`

const seconds = (ms: number): string => `${+(ms / 1000).toFixed(1)} s`

/** Less throttling than this is normal for a CPU share, and not an event. */
const SLOWED_MS = 300

export const isWorthReporting = (hit: LimitHit): boolean => hit.limit !== 'cpus' || hit.amount >= SLOWED_MS

/** The fix for the user: double the limit. */
export function raiseLimit({ limit, bound }: LimitHit): string {
  const twice = bound * 2
  const value =
    limit === 'memory' || limit === 'disk' || limit === 'output'
      ? showBytes(twice as Bytes)
      : limit === 'wall'
        ? showMillis(Math.min(twice, MAX_MILLIS) as Millis)
        : twice
  return `--limit ${limit}=${value} at the next start, or pen config set limits.${limit} ${value}`
}

/** One line for a person. It contains no text from the sandbox. */
export function describeHit(hit: LimitHit): string {
  const note = hit.note === undefined ? '' : ` (${hit.note})`
  if (hit.what === 'refused' && (hit.limit === 'memory' || hit.limit === 'disk'))
    return `limits.${hit.limit} bounds scratch to ${size(hit.bound)}: writes were refused${note}`
  switch (hit.limit) {
    case 'memory':
      return `the sandbox was stopped: it used ${size(hit.used)} of memory, limits.memory is ${size(hit.bound)}${note}`
    case 'disk':
    case 'output':
      return `the sandbox was stopped: it wrote ${size(hit.used)}, limits.${hit.limit} is ${size(hit.bound)}${note}`
    case 'pids':
      return hit.what === 'killed'
        ? `the sandbox was stopped: it had ${hit.used} processes and threads, limits.pids is ${hit.bound}${note}`
        : `limits.pids (${hit.bound}) was reached: new processes and threads were refused${note}`
    case 'cpus':
      return `limits.cpus (${hit.bound}) slowed the sandbox down for ${seconds(hit.amount)}${note}`
    case 'wall':
      return `the sandbox was stopped after ${seconds(hit.used)}, limits.wall is ${seconds(hit.bound)}${note}`
    case 'files':
      return `limits.files (${hit.bound}) was reached: a process could open no more${note}`
  }
}
