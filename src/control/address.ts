/** How a client reaches a control socket. The binary and the library share this file: it runs on Bun and on Node. */
import { closeSync, constants, openSync } from 'node:fs'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { basename, dirname } from '../base/posix-path.ts'

/** The size of `sun_path` in the kernel, including the closing NUL. */
const MAX_ADDRESS_LENGTH = 108

/** How long a client waits for an answer. A live supervisor on a busy machine is faster. */
export const ANSWER_TIMEOUT_MS = 10_000

/** A killed supervisor leaves a socket without a listener. A supervisor that is ending resets connections. */
const NOT_LISTENING = ['ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']

export const controlPath = (stateDir: string): string => `${stateDir}/control`

export interface Address {
  readonly path: string
  close(): void
}

/** A socket path can be longer than an address may be. The address then goes through a descriptor of the directory. */
export function addressOf(socket: string): Address {
  if (Buffer.byteLength(socket) < MAX_ADDRESS_LENGTH || process.platform !== 'linux')
    return { path: socket, close: () => undefined }
  const directory = openSync(dirname(socket), constants.O_RDONLY | constants.O_DIRECTORY)
  return {
    path: `/proc/self/fd/${directory}/${basename(socket)}`,
    close: () => closeSync(directory),
  }
}

/** Undefined when no supervisor listens: there is none, or it has just ended. */
export function connectError(stateDir: string, cause: unknown): PenError | undefined {
  const errno = errnoOf(cause)
  if (errno !== undefined && NOT_LISTENING.includes(errno)) return undefined
  return new PenError('STATE', {
    what: `cannot connect to the supervisor of this sandbox (${errnoText(cause)})`,
    at: controlPath(stateDir),
    hint: errno === 'EACCES' ? 'the sandbox belongs to another user' : 'pen stop',
    cause,
  })
}
