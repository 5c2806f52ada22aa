/**
 * A terminal of the sandbox's own. Wherever a descriptor of pen's is the user's terminal, the sandbox gets this one
 * instead, so that it can neither read the user's keys past its end, nor change the modes, nor type into the shell.
 */
import { readdirSync, readlinkSync, readSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { leaveLineEnds, ModeKeeper, makeRaw, windowSize } from './host-terminal.ts'
import { TerminalFilter } from './terminal-filter.ts'

type Stdio = readonly [number | 'inherit', number | 'inherit', number | 'inherit']

export interface Pty {
  readonly stdio: Stdio
  /** Whether the command's stdin is this terminal, so that it should also be its controlling one. */
  readonly interactive: boolean
  /** Call when all of the command has ended: shows what is left, and gives the user's terminal back. */
  close(): Promise<void>
}

/** `ours` are those of the three descriptors that are terminals: at least one. */
export function openPty(ours: readonly number[]): Pty {
  const screen = ours.includes(1) ? 1 : ours.includes(2) ? 2 : 0
  const filter = new TerminalFilter()
  const modes = new ModeKeeper()
  const known = new Set(readdirSync('/proc/self/fd'))
  const show = (bytes: Uint8Array): void => {
    const shown = filter.push(bytes)
    modes.saw(Buffer.from(shown).toString('latin1'))
    writeAll(screen, shown)
  }
  const terminal = new Bun.Terminal({ ...windowSize(screen), data: (_terminal, bytes) => show(bytes) })
  const master = findEnd(known, /^\/dev\/(pts\/)?ptmx$/)
  const slave = findEnd(known, /^\/dev\/pts\/\d+$/)
  const interactive = ours.includes(0)
  // Whose terminal is not raw makes its own line ends: twice would be once too often.
  const restore = interactive ? makeRaw(0) : leaveLineEnds(slave)
  const onResize = () => {
    const { cols, rows } = windowSize(screen)
    terminal.resize(cols, rows)
  }
  process.on('SIGWINCH', onResize)
  const giveBack = () => {
    modes.restore(screen)
    restore()
  }
  // Also when pen ends by a mistake of its own, which the sandbox may have found.
  process.once('exit', giveBack)
  if (interactive) void relayKeys(terminal)
  return {
    stdio: [0, 1, 2].map(fd => (ours.includes(fd) ? slave : 'inherit')) as unknown as Stdio,
    interactive,
    close: async () => {
      // On a busy machine the runtime hears of the last words too late. Whoever reads gets all that was written.
      if (!terminal.closed) readAll(master, show)
      process.off('SIGWINCH', onResize)
      writeAll(screen, filter.end())
      process.off('exit', giveBack)
      giveBack()
      if (!terminal.closed) terminal.close()
    },
  }
}

async function relayKeys(terminal: Bun.Terminal): Promise<void> {
  try {
    for await (const keys of Bun.stdin.stream()) {
      if (terminal.closed) return
      terminal.write(keys)
    }
  } catch {
    // As below.
  }
  // The user's terminal is gone. If it was ours to be told by, SIGHUP does; the sandbox's own is gone with it in any case.
  if (!terminal.closed) terminal.close()
}

/** Bun keeps both ends to itself; they are the terminals among our descriptors that were not there before. */
function findEnd(known: ReadonlySet<string>, name: RegExp): number {
  for (const fd of readdirSync('/proc/self/fd')) {
    if (known.has(fd)) continue
    try {
      if (name.test(readlinkSync(`/proc/self/fd/${fd}`))) return Number(fd)
    } catch {
      // The descriptor of this very listing.
    }
  }
  throw new Error('the pseudo-terminal has no other end')
}

/** What is there now. The descriptor waits for nobody. */
function readAll(fd: number, take: (bytes: Uint8Array) => void): void {
  const buffer = Buffer.alloc(65_536)
  try {
    for (let size = 1; size > 0; take(buffer.subarray(0, size))) size = readSync(fd, buffer)
  } catch {
    // Nothing is left.
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(fd, bytes, done)
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}
