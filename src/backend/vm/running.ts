/** A virtual machine that waits to begin, as the supervisor sees it. Its parts end together. */
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Ending, Running } from '../backend.ts'
import type { DaemonLink } from '../daemon-link.ts'
import type { GuestConsole } from './guest-console.ts'

interface Parts {
  /** QEMU's box. */
  readonly machine: Running
  /** virtiofsd's sandbox. */
  readonly server: Running
  readonly link: DaemonLink
  readonly console: GuestConsole
  readonly undo: UndoStack
}

/** A guest under load, without KVM, may take this long to boot. */
const BOOT_MS = 120_000

export function runningMachine({ machine, server, link, console, undo }: Parts): Running {
  let killed = false
  let isReady: boolean = false
  const end = (): void => {
    machine.kill()
    server.kill()
  }
  const kill = (): void => {
    killed = true
    end()
  }
  let timer: NodeJS.Timeout | undefined
  const over = Promise.race(
    [link.closed, machine.ended, server.ended].map(part => Promise.allSettled([part])),
  )
  const ended = over.then(async (): Promise<Ending> => {
    end()
    await Promise.allSettled([machine.ended, server.ended])
    clearTimeout(timer)
    link.close()
    await undo.unwind()
    if (!isReady && !killed) throw notStarted(await console.lastLine())
    return killed ? { kind: 'killed' } : { kind: 'exit', code: 0 }
  })
  ended.catch(() => undefined)
  const ready = link.ready.then(
    () => {
      isReady = true
      clearTimeout(timer)
    },
    async () => {
      await Promise.allSettled([machine.ended])
      throw notStarted(killed ? 'it was stopped' : await console.lastLine())
    },
  )
  ready.catch(() => undefined)
  return {
    begin: audit => {
      server.begin(audit)
      machine.begin(audit)
      timer = setTimeout(() => link.close(), BOOT_MS)
    },
    ready,
    exec: (order, output) => link.exec(order, output),
    ended,
    ownKernel: true,
    ownNetwork: true,
    initPid: () => machine.initPid(),
    kill,
    // While the guest boots there is no command that could take a signal.
    signal: name => (isReady ? link.signal(name) : kill()),
    ...(server.mounts !== undefined && { mounts: server.mounts }),
  }
}

const notStarted = (why: string): PenError =>
  new PenError('BACKEND', {
    what: `the virtual machine did not start (${why})`,
    hint: 'run `pen doctor` to test it; isolations "process" and "container" need no virtual machine',
  })
