/** Where a control socket is connected to. The library asks here too: Node and Bun have it alike. */
import { closeSync, constants, openSync } from 'node:fs'
import { basename, dirname } from '../base/posix-path.ts'

/** As the kernel has it, with the closing NUL. */
const LONGEST_ADDRESS = 108

export interface Address {
  readonly path: string
  close(): void
}

/** A path is longer in some homes than an address may be: then the way is through the open directory. */
export function addressOf(socket: string): Address {
  if (Buffer.byteLength(socket) < LONGEST_ADDRESS || process.platform !== 'linux')
    return { path: socket, close: () => undefined }
  const directory = openSync(dirname(socket), constants.O_RDONLY | constants.O_DIRECTORY)
  return {
    path: `/proc/self/fd/${directory}/${basename(socket)}`,
    close: () => closeSync(directory),
  }
}
