import type { Found } from '../../base/beneath/open-beneath.ts'

/**
 * The file that an order is for: device and inode of the host's file, in decimal. A mount on any other file is refused.
 */
export interface FileIdentity {
  readonly dev: string
  readonly ino: string
}

/** For pen's own paths, in a sandbox in which nothing runs yet. */
export const ANY_FILE: FileIdentity = { dev: 'any', ino: 'any' }

export const isSameFile = ({ dev, ino }: FileIdentity, found: Found): boolean =>
  found.kind !== 'link' && (dev === ANY_FILE.dev || (String(found.dev) === dev && String(found.ino) === ino))
