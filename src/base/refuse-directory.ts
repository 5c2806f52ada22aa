/** Through an open directory, a sandbox could walk the host's whole tree. So stdin, stdout and stderr must not be one. */
import { PenError } from './error.ts'

/** `index` is 0, 1 or 2. */
export function refuseDirectory(index: number, stat: { isDirectory(): boolean }): void {
  if (stat.isDirectory())
    throw new PenError('USAGE', {
      what: `descriptor ${index} is a directory`,
      hint: 'redirect from or to a file, a pipe or /dev/null; grant a directory with --read',
    })
}
