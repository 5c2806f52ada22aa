/**
 * A hidden mode of pen, which pen starts inside a sandbox's network namespace before the sandbox starts. It makes every
 * address local, opens the door's listeners, passes them to pen and ends. Nothing hostile runs in the namespace yet. It
 * has no event loop, so it costs little more than its own start.
 *
 * Port forwarding starts it there again, beside hostile processes, to open sockets. Then it has no capabilities, and the
 * sandbox cannot see it.
 */
import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { sendDescriptors } from '../../base/kernel/pass-descriptors.ts'
import { AF, SOCK, SOL, socketOption } from '../../base/kernel/socket.ts'
import { type Opened, openListeners, openMapped } from './listeners.ts'
import { openSockets } from './sockets.ts'

/** The word after `pen`. Without the descriptor below it does nothing. */
export const DOOR_MODE = '__door'
/** Asks for sockets of a running sandbox, to dial with. */
export const SOCKETS = 'sockets'
/** The descriptor of the socket over which the listeners go back. Only pen opens it. */
const CHANNEL = 3
/** The exit code when the kernel refused the rules. pen then opens the door without rules. */
export const RULES_REFUSED: ExitCode = 4

const SO_TYPE = 3
const SO_DOMAIN = 39

/** `mapped`: a door with rules. `ports 80,443`: a door without rules. `sockets 16`: only sockets to dial with. */
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
  return how === 'mapped' ? openMapped() : openListeners(what.split(',').map(Number))
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
