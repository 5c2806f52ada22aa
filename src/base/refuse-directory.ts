/** From a directory that was left open a sandbox could walk the host's whole tree: none crosses, as nothing but bytes does. */
import { PenError } from './error.ts'

/** `index`: which of stdin, stdout and stderr it is. */
export function refuseDirectory(index: number, stat: { isDirectory(): boolean }): void {
  if (stat.isDirectory())
    throw new PenError('USAGE', {
      what: `descriptor ${index} is a directory`,
      hint: 'redirect from or to a file, a pipe or /dev/null; grant a directory with --read',
    })
}
