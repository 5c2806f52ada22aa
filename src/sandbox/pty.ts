/**
 * A terminal of the sandbox's own. Wherever a descriptor of pen's is the user's terminal, the sandbox gets this one
 * instead, so that it can neither read the user's keys past its end, nor change the modes, nor type into the shell.
 */
import { readdirSync, readlinkSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { leaveLineEnds, ModeKeeper, makeRaw, windowSize } from './host-terminal.ts'
import { TerminalFilter } from './terminal-filter.ts'

type Stdio = readonly [number | 'inherit', number | 'inherit', number | 'inherit']

export interface Pty {
  readonly stdio: Stdio
  /** Whether the command's stdin is this terminal, so that it should also be its controlling one. */
  readonly interactive: boolean
  /** Call when the command has ended: shows what is left, and gives the user's terminal back. */
  close(): Promise<void>
}

/** `ours` are those of the three descriptors that are terminals: at least one. */
export function openPty(ours: readonly number[]): Pty {
  const screen = ours.includes(1) ? 1 : ours.includes(2) ? 2 : 0
  const filter = new TerminalFilter()
  const modes = new ModeKeeper()
  const known = new Set(readdirSync('/proc/self/fd'))
  let last = performance.now()
  const terminal = new Bun.Terminal({
    ...windowSize(screen),
    data: (_terminal, bytes) => {
      last = performance.now()
      const shown = filter.push(bytes)
      modes.saw(Buffer.from(shown).toString('latin1'))
      writeAll(screen, shown)
    },
  })
  const slave = findSlave(known)
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
      // What the command wrote last may still be on its way: wait until it is quiet.
      do await Bun.sleep(4)
      while (performance.now() - last < 4)
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

/** Bun keeps the other end to itself; it is the terminal among our descriptors that was not there before. */
function findSlave(known: ReadonlySet<string>): number {
  for (const fd of readdirSync('/proc/self/fd')) {
    if (known.has(fd)) continue
    try {
      if (/^\/dev\/pts\/\d+$/.test(readlinkSync(`/proc/self/fd/${fd}`))) return Number(fd)
    } catch {
      // The descriptor of this very listing.
    }
  }
  throw new Error('the pseudo-terminal has no other end')
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
