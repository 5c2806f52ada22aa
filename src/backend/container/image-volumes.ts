/** Storage that an image asks for by itself (`VOLUME`). Its paths are hostile: they may lie in what the user granted. */
import { posix } from 'node:path'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Bind } from './arguments.ts'

/** Docker makes a directory for each, in what is mounted there: it would stay in the project. podman is told to make none. */
export function refuseVolumes(volumes: readonly string[], binds: readonly Bind[]): void {
  const within = volumes.find(path => binds.some(({ at }) => isWithin(posix.resolve('/', path), at)))
  if (within === undefined) return
  throw new PenError('IMAGE', {
    what: 'the image declares a volume inside a directory of the host',
    at: printable(within),
    hint: 'take that VOLUME out of the Dockerfile, or use podman, which can be told to ignore it',
  })
}
