import type { Found } from '../../base/beneath/open-beneath.ts'

/**
 * The file that an order is for: device and inode of the host's file, in decimal. A mount on any other file is refused.
 */
export interface Meant {
  readonly dev: string
  readonly ino: string
}

/** For pen's own paths, in a sandbox in which nothing runs yet. */
export const WHATEVER_IS_THERE: Meant = { dev: 'any', ino: 'any' }

export const isMeant = ({ dev, ino }: Meant, found: Found): boolean =>
  found.kind !== 'link' &&
  (dev === WHATEVER_IS_THERE.dev || (String(found.dev) === dev && String(found.ino) === ino))
