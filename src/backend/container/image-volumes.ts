import { posix } from 'node:path'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Bind } from './arguments.ts'

/**
 * Refuses a `VOLUME` of an image inside a granted tree. Its path is hostile. Docker would make a directory there, which
 * would stay in the project. podman has an option to make none.
 */
export function refuseVolumes(volumes: readonly string[], binds: readonly Bind[]): void {
  const within = volumes.find(path => binds.some(({ at }) => isWithin(posix.resolve('/', path), at)))
  if (within === undefined) return
  throw new PenError('IMAGE', {
    what: 'the image declares a volume inside a directory of the host',
    at: printable(within),
    hint: 'remove that VOLUME from the Dockerfile, or use podman, which can ignore it',
  })
}
