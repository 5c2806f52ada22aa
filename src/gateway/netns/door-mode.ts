/**
 * pen in its hidden mode, started by pen inside a sandbox's network namespace and gone before the sandbox starts:
 * it makes every address local, opens the door's listeners there, hands them out and ends. Nothing hostile runs
 * in the namespace yet. It has no event loop, so that it costs little more than its own start.
 *
 * Later it is started there once more for sockets to dial with, beside what is hostile: without any power, in nobody's sight.
 */
import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { sendDescriptors } from '../../base/kernel/pass-descriptors.ts'
import { AF, SOCK, SOL, socketOption } from '../../base/kernel/socket.ts'
import { type Opened, openListeners } from './listeners.ts'
import { openSockets } from './sockets.ts'

/** The word after `pen`. By itself it opens nothing: the descriptor below must be there too. */
export const DOOR_MODE = '__door'
/** What the mode is asked for when a sandbox that runs already is to be dialled. */
export const SOCKETS = 'sockets'
/** Where pen, and nobody else, leaves the socket over which the listeners go back. */
export const CHANNEL = 3
/** How this mode ends when the kernel refused the rules: the door can be opened without them. */
export const RULES_REFUSED: ExitCode = 4

const SO_TYPE = 3
const SO_DOMAIN = 39

/** `mapped`: with rules. `ports 80,443`: without. `sockets 16`: no door, but sockets to dial with. */
export function runDoorMode([how, what = '']: readonly string[]): ExitCode {
  if (!isChannel(CHANNEL))
    throw new PenError('USAGE', { what: `${DOOR_MODE} is not a verb: pen starts it by itself` })
  const opened = open(how, what)
  if (opened === undefined) return RULES_REFUSED
  sendDescriptors(CHANNEL, {
    text: JSON.stringify(opened.map(([role]) => role)),
    descriptors: opened.map(([, fd]) => fd),
  })
  return EXIT.ok
}

function open(how: string | undefined, what: string): Opened | undefined {
  if (how === SOCKETS) return openSockets(Number(what))
  return how === 'mapped' ? openListeners('mapped') : openListeners(what.split(',').map(Number))
}

function isChannel(fd: number): boolean {
  try {
    return (
      socketOption(fd, SOL.socket, SO_DOMAIN) === AF.unix &&
      socketOption(fd, SOL.socket, SO_TYPE) === SOCK.seqpacket
    )
  } catch {
    return false
  }
}
