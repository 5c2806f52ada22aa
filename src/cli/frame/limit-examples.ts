import type { Limits } from '../../policy/policy.ts'
import { type Offer, words } from '../completion/candidate.ts'

/** Typed by the policy itself: a limit without a row does not compile. */
const EXAMPLES: Readonly<Record<keyof Limits, readonly string[]>> = {
  cpus: ['1', '2', '4'],
  memory: ['1GiB', '2GiB', '4GiB', '8GiB'],
  pids: ['512', '4096', '16384'],
  disk: ['1GiB', '10GiB', '50GiB'],
  output: ['100MiB', '1GiB'],
  files: ['1024', '4096'],
  wall: ['10m', '1h', '8h'],
}

/** The keys first, then a few sizes for the one that was typed. */
export function limitExamples(current: string): Offer {
  const key = Object.keys(EXAMPLES).find(name => current.startsWith(`${name}=`))
  if (key === undefined) return words(Object.keys(EXAMPLES).map(name => `${name}=`))
  return words(EXAMPLES[key as keyof Limits].map(value => `${key}=${value}`))
}
