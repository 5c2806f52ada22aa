/**
 * Only bytes cross the boundary. A descriptor of a file is more than its bytes: through `/proc/self/fd` the sandbox
 * could open the same file again, for writing too, and from a directory it could walk the host's whole tree; through a
 * socket it could reach the host's network. So those are read and written by a `cat` on the host, and the sandbox
 * holds one end of a pipe.
 */
import { closeSync, fchownSync, fstatSync, readlinkSync, type Stats } from 'node:fs'
import { findTool } from '../../base/find-tool.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import { systemCall } from '../../base/kernel/system-call.ts'
import { missingTool } from '../../base/missing-tool.ts'
import { refuseDirectory } from '../../base/refuse-directory.ts'
import { startProgram } from '../../base/start-program.ts'
import type { StartOptions } from '../backend.ts'
import type { Identity } from '../mounts/id-mapping.ts'

type Stdio = StartOptions['stdio']

export interface Crossing {
  readonly stdio: Stdio
  /** Gives up our copies of what the sandbox now holds; without it no pipe would ever end. */
  handedOver(): void
  /** Resolves when everything that was written has arrived. */
  drained(): Promise<void>
}

/** A disk that hangs must not keep pen from ending. */
const PATIENCE_MS = 2000

export function crossStdio(stdio: Stdio, identity: Identity | undefined): Crossing {
  const given: number[] = []
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
    // Both to one file: through one pipe, so that the order of what is written stays.
    const file = `${stat.dev}:${stat.ino}`
    const known = index === 0 ? undefined : writers.get(file)
    if (known !== undefined) return known.fd
    const [read, write] = pipe()
    if (identity !== undefined) give(write, fstatSync(write), identity)
    if (index === 0) {
      readers.push(cat(fd, write))
      closeSync(write)
      given.push(read)
      return read
    }
    writers.set(file, { fd: write, cat: cat(read, fd) })
    closeSync(read)
    given.push(write)
    return write
  }
  const crossed = stdio.map(cross) as unknown as Stdio
  return {
    stdio: crossed,
    handedOver: () => {
      for (const fd of given.splice(0)) closeSync(fd)
    },
    drained: async () => {
      for (const reader of readers) reader.kill('SIGKILL')
      const all = [...writers.values()].map(writer => writer.cat)
      if (all.length === 0) return
      await Promise.race([Promise.all(all.map(writer => writer.exited)), Bun.sleep(PATIENCE_MS)])
      for (const writer of all) writer.kill('SIGKILL')
    },
  }
}

/** In a session of its own: what is typed at pen's terminal ends the command, not the way of its last words. */
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

const SOL_SOCKET = 1
const SO = { type: 3, domain: 39 }
const AF_UNIX = 1
const SOCK_STREAM = 1

/**
 * A socket belongs to the network it was made in, and takes it along: one of TCP, or of datagrams, can be parted from its peer and
 * connected to anything that the host reaches. A Unix stream, which is what most programs start others with, cannot.
 */
function staysConnected(fd: number): boolean {
  const option = (name: number): number => {
    const value = new Int32Array(1)
    systemCall('getsockopt', fd, SOL_SOCKET, name, bytesOf(value), bytesOf(Int32Array.of(4)))
    return value[0] ?? 0
  }
  try {
    if (option(SO.domain) !== AF_UNIX || option(SO.type) !== SOCK_STREAM) return false
    systemCall('getpeername', fd, new Uint8Array(128), bytesOf(Int32Array.of(128)))
    return true
  } catch {
    return false // not connected
  }
}

const bytesOf = (words: Int32Array): Uint8Array => new Uint8Array(words.buffer)

/** A nameless pipe. A named one is a file of the host, whose owner is not ours to change. */
const isPipe = (fd: number): boolean => readlinkSync(`/proc/self/fd/${fd}`).startsWith('pipe:')

/** Root's pipe or pseudo-terminal becomes the sandbox's: else `/dev/stdout` could not be opened inside. */
function give(fd: number, stat: Stats, { uid, gid }: Identity): void {
  if (stat.uid !== 0) return
  try {
    fchownSync(fd, uid, gid)
  } catch {
    // Writing to the descriptor itself works all the same.
  }
}
