/**
 * Bun does not pause a listener when descriptors run out (EMFILE): it asks again at once, forever. So that point is
 * never reached: each connection may cost two descriptors, ours and that of the other side, and there are bounds for both kinds.
 */
import { readFileSync } from 'node:fs'

/** What a supervisor needs besides. */
const RESERVED = 256
const MOST_FORWARDED = 512

export function connectionLimits(): { readonly gateway: number; readonly forwards: number } {
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  const most = soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  const forwards = Math.min(MOST_FORWARDED, Math.floor(most / 16))
  return { gateway: Math.max(16, Math.floor((most - RESERVED) / 2) - forwards), forwards }
}
