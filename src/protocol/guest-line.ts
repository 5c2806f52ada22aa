/**
 * The first line that a guest gets over its port: what it needs to enter a sandbox. A guest waits for it after its boot,
 * and a snapshot is taken there. The orders of the exec daemon follow.
 */
import { protocolError } from './frame.ts'

/** What a guest prints on its console when it waits. */
export const WAITING = 'pen: waiting'

/** The names under which the guest finds the whole tree, and the project in it. */
export const TAG = { tree: 'tree', project: 'project' } as const

export interface GuestLine {
  readonly project: string
  /** Limits of each user and each process. */
  readonly processes: number
  readonly files: number
  /**
   * Null unless commands are root of the guest. Then they may change the system, and what they write stays in the guest,
   * except in these places.
   */
  readonly root: readonly string[] | null
  /** Bytes of `/dev/shm`. */
  readonly shared: number
  /** The host's clock, in milliseconds. */
  readonly time: number
  /** Random bytes that no other guest gets. */
  readonly seed: string
}

export const MAX_GUEST_LINE = 16_384

export const writeGuestLine = (line: GuestLine): string => `${JSON.stringify(line)}\n`

export function readGuestLine(text: string): GuestLine {
  const { project, processes, files, root, shared, time, seed } = JSON.parse(text) as GuestLine
  const numbers = [processes, files, shared, time]
  const places = [project, ...(root ?? [])]
  if (!places.every(isPath) || !numbers.every(Number.isSafeInteger) || seed === '')
    throw protocolError('an invalid first line')
  return { project, processes, files, root, shared, time, seed }
}

const isPath = (place: unknown): boolean => typeof place === 'string' && place.startsWith('/')
