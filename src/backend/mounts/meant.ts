/** Which file an order means: the one that the host has at that path, by its identity. */
import type { Found } from '../../base/beneath/open-beneath.ts'

/** In decimal. Nothing else is ever mounted on. */
export interface Meant {
  readonly dev: string
  readonly ino: string
}

/** For places that are pen's own, in a sandbox in which nothing runs yet. */
export const WHATEVER_IS_THERE: Meant = { dev: 'any', ino: 'any' }

export const isMeant = ({ dev, ino }: Meant, found: Found): boolean =>
  found.kind !== 'link' &&
  (dev === WHATEVER_IS_THERE.dev || (String(found.dev) === dev && String(found.ino) === ino))
