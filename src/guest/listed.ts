/**
 * The guest mode for `tools.exec: "listed"`: the first program of a sandbox, with the sandbox's rights. It waits until
 * pen has made the mounts noexec, restricts execution by Landlock, and executes the command.
 */
import { accessSync, constants, readFileSync, readSync, statSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { tryCall } from '../base/kernel/system-call.ts'
import { LISTED_MODE, type ListedOrder, READY } from '../protocol/listed-order.ts'
import { become, restoreSignals } from './become.ts'
import { restrictExecution } from './landlock.ts'

const CLOSE_RANGE_CLOEXEC = 4
const ENOENT = 2

export async function runListed(words: readonly string[]): Promise<ExitCode> {
  const [orderFd, readyFd] = words.map(Number)
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || !isOpen(orderFd) || !isOpen(readyFd))
    throw new PenError('USAGE', { what: `${LISTED_MODE} is not a verb: pen starts it by itself` })
  // pen wrote it on the host, before anything of the sandbox ran.
  const order = JSON.parse(readFileSync(orderFd, 'utf8')) as ListedOrder
  awaitReady(readyFd)
  const file = locate(order.argv[0] ?? '', order.env.find(({ name }) => name === 'PATH')?.value ?? '')
  restrictExecution(order.executable)
  // The command gets only 0, 1 and 2: not this program's descriptors, and not the one of its own file.
  if (tryCall('close_range', 3, 0xffff_ffff, CLOSE_RANGE_CLOEXEC) < 0)
    throw new PenError('INTERNAL', { what: 'descriptors could not be closed' })
  const env = order.env.map(({ name, value }) => `${name}=${value}`)
  restoreSignals()
  const errno = become(file, order.argv, env)
  const what = `${order.argv[0]} could not be executed (errno ${errno}): tools.exec is "listed"`
  process.stderr.write(`pen: ${what}\n`)
  return errno === ENOENT ? EXIT.notFound : EXIT.notExecutable
}

function awaitReady(fd: number): void {
  const byte = Buffer.alloc(1)
  if (readSync(fd, byte, 0, 1, null) !== 1 || byte.toString('latin1') !== READY)
    throw new PenError('BACKEND', { what: 'pen ended before the sandbox was ready' })
}

/** Searches the PATH, as `execvp` does. The kernel decides what may be executed. */
function locate(name: string, path: string): string {
  if (name.includes('/')) return name
  const places = path.split(':').map(directory => `${directory}/${name}`)
  return places.find(runs) ?? name
}

function runs(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function isOpen(fd: number | undefined): fd is number {
  if (fd === undefined || !Number.isInteger(fd) || fd < 3) return false
  try {
    readFileSync(`/proc/self/fdinfo/${fd}`)
    return true
  } catch {
    return false
  }
}
