/**
 * Only bytes cross the boundary. Through `/proc/self/fd` the sandbox could open a file again, also for writing. From a
 * directory it could walk the host's tree, and through a socket it could reach the host's network. So a `cat` on the
 * host reads or writes these, and the sandbox gets one end of a pipe.
 */
import { closeSync, fchownSync, fstatSync, readlinkSync, type Stats } from 'node:fs'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import { AF, SOCK, SOL, socketOption } from '../../base/kernel/socket.ts'
import { systemCall } from '../../base/kernel/system-call.ts'
import { refuseDirectory } from '../../base/refuse-directory.ts'
import { startProgram } from '../../base/start-program.ts'
import type { StartOptions } from '../backend.ts'
import type { Identity } from '../mounts/id-mapping.ts'

type Stdio = StartOptions['stdio']

export interface Crossing {
  readonly stdio: Stdio
  /** Closes pen's copies of the sandbox's descriptors. Otherwise no pipe would reach its end. */
  closeCopies(): void
  /** Resolves when all output has been written. */
  drained(): Promise<void>
}

/** A disk that hangs must not stop pen from exiting. */
const TIMEOUT_MS = 2000

export function crossStdio(stdio: Stdio, identity: Identity | undefined): Crossing {
  const copies: number[] = []
  const readers: Bun.Subprocess[] = []
  const writers = new Map<string, { readonly fd: number; readonly cat: Bun.Subprocess }>()
  const cross = (entry: number | 'inherit', index: number): number | 'inherit' => {
    const fd = entry === 'inherit' ? index : entry
    const stat = statOf(fd)
    if (stat === undefined) return entry
    refuseDirectory(index, stat)
    if (stat.isFIFO() || (stat.isSocket() && staysConnected(fd)) || stat.isCharacterDevice()) {
      if (identity !== undefined && (entry !== 'inherit' || isPipe(fd))) give(fd, stat, identity)
      return entry
    }
    // When stdout and stderr are one file they share one pipe, which keeps the order of writes.
    const file = `${stat.dev}:${stat.ino}`
    const known = index === 0 ? undefined : writers.get(file)
    if (known !== undefined) return known.fd
    const [read, write] = pipe()
    if (identity !== undefined) give(write, fstatSync(write), identity)
    if (index === 0) {
      readers.push(cat(fd, write))
      closeSync(write)
      copies.push(read)
      return read
    }
    writers.set(file, { fd: write, cat: cat(read, fd) })
    closeSync(read)
    copies.push(write)
    return write
  }
  const crossed = stdio.map(cross) as unknown as Stdio
  return {
    stdio: crossed,
    closeCopies: () => {
      for (const fd of copies.splice(0)) closeSync(fd)
    },
    drained: async () => {
      for (const reader of readers) reader.kill('SIGKILL')
      const all = [...writers.values()].map(writer => writer.cat)
      if (all.length === 0) return
      await Promise.race([Promise.all(all.map(writer => writer.exited)), Bun.sleep(TIMEOUT_MS)])
      for (const writer of all) writer.kill('SIGKILL')
    },
  }
}

/** In a new session: Ctrl-C at pen's terminal ends the command, but not the `cat` that writes its last output. */
function cat(from: number, to: number): Bun.Subprocess {
  const tool = findTool('cat')
  if (tool === undefined) throw missingTool('cat', 'install coreutils')
  return startProgram([tool], {
    stdio: [from, to, 'ignore'],
    detached: true,
    env: {},
    cwd: '/',
  } as Parameters<typeof startProgram>[1])
}

function statOf(fd: number): Stats | undefined {
  try {
    return fstatSync(fd)
  } catch {
    return undefined // closed: the guard's descriptor is closed too
  }
}

const SO = { type: 3, domain: 39 }

/**
 * A socket keeps the network namespace in which it was made. A TCP or datagram socket can be disconnected and connected
 * to any address that the host reaches. A connected Unix stream, which many programs use for stdio, cannot.
 */
function staysConnected(fd: number): boolean {
  const option = (name: number): number => socketOption(fd, SOL.socket, name)
  try {
    if (option(SO.domain) !== AF.unix || option(SO.type) !== SOCK.stream) return false
    systemCall('getpeername', fd, new Uint8Array(128), Int32Array.of(128))
    return true
  } catch {
    return false // not connected
  }
}

/** True for an unnamed pipe. A named pipe is a file of the host, whose owner pen must not change. */
const isPipe = (fd: number): boolean => readlinkSync(`/proc/self/fd/${fd}`).startsWith('pipe:')

/** Gives root's pipe or pseudo-terminal to the sandbox's user. Otherwise `/dev/stdout` cannot be opened inside. */
function give(fd: number, stat: Stats, { uid, gid }: Identity): void {
  if (stat.uid !== 0) return
  try {
    fchownSync(fd, uid, gid)
  } catch {
    // Writing to the descriptor itself works without this.
  }
}
