/** A virtual machine that waits to begin, as the supervisor sees it. Its parts end together. */
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Ending, Running } from '../backend.ts'
import type { DaemonLink } from '../daemon-link.ts'
import type { BootedMachine } from './boot.ts'
import { passBrokerClients } from './broker-clients.ts'

interface Parts {
  readonly machine: BootedMachine
  /** virtiofsd's sandbox. */
  readonly server: Running
  readonly link: DaemonLink
  /** Sends the guest what it waits for. */
  readonly wake: () => void
  readonly undo: UndoStack
  /** The host's directory with the socket of the file broker. */
  readonly brokerDir: string
}

/** A guest under load, without KVM, may take this long to boot. */
const BOOT_MS = 120_000

export function runningMachine({ machine: booted, server, link, wake, undo, brokerDir }: Parts): Running {
  const { running: machine, console } = booted
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
      passBrokerClients(link, brokerDir)
    },
    async () => {
      if (!killed) booted.distrust()
      await Promise.allSettled([machine.ended])
      throw notStarted(killed ? 'it was stopped' : await console.lastLine())
    },
  )
  ready.catch(() => undefined)
  return {
    begin: audit => {
      server.begin(audit)
      booted
        .boot()
        .then(() => booted.attachFiles())
        .then(wake, end)
      timer = setTimeout(() => link.close(), BOOT_MS)
    },
    ready,
    exec: (order, output) => link.exec(order, output),
    ended,
    ownKernel: true,
    dial: async port => {
      const socket = link.connect({ port })
      await socket.opened
      return socket
    },
    inside: brokerDir,
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
