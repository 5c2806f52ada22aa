/** A virtual machine that waits to begin, as the supervisor sees it. Its parts end together. */
import type { UndoStack } from '../../base/undo.ts'
import type { Ending, Running } from '../backend.ts'
import type { DaemonLink } from '../daemon-link.ts'
import type { BootedMachine } from './boot.ts'
import { passBrokerClients } from './broker-clients.ts'
import { FailedStart } from './failed-start.ts'
import type { FileServer } from './file-server.ts'

interface Parts {
  readonly machine: BootedMachine
  readonly server: FileServer
  readonly link: DaemonLink
  /** Sends the guest what it waits for. */
  readonly wake: () => void
  readonly undo: UndoStack
  /** The host's directory with the socket of the file broker. */
  readonly brokerDir: string
}

/** A guest under load, without KVM, may take this long to boot. */
const BOOT_MS = 120_000
/** The part that failed first may end, and say why, before the others are killed. */
const LAST_WORDS_MS = 500

export function runningMachine({
  machine: booted,
  server: files,
  link,
  wake,
  undo,
  brokerDir,
}: Parts): Running {
  const { running: machine } = booted
  const { running: server } = files
  const failure = new FailedStart(booted, files)
  const failed = Promise.withResolvers<void>()
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
  const fail = (why: string): void => {
    failure.because(why)
    failed.resolve()
  }
  let timer: NodeJS.Timeout | undefined
  const parts = [machine.ended, server.ended].map(async part => await Promise.allSettled([part]))
  const ended = Promise.race([link.closed, failed.promise, ...parts]).then(async (): Promise<Ending> => {
    clearTimeout(timer)
    const hasFailed = !isReady && !killed
    if (hasFailed) await Promise.race([...parts, Bun.sleep(LAST_WORDS_MS)])
    failure.complete()
    end()
    await Promise.all(parts)
    if (hasFailed) booted.distrust()
    link.close()
    await undo.unwind()
    if (hasFailed) throw await failure.error()
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
      await ended
      throw FailedStart.stopped()
    },
  )
  ready.catch(() => undefined)
  return {
    begin: audit => {
      server.begin(audit)
      booted
        .boot()
        .then(() => booted.attachFiles())
        .then(() => files.hideProcesses())
        .then(wake)
        .catch((error: unknown) => fail(error instanceof Error ? error.message : 'its boot failed'))
      timer = setTimeout(() => fail(`the guest was not ready after ${BOOT_MS / 1000} s`), BOOT_MS)
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
    filesPid: () => server.initPid(),
    kill,
    // While the guest boots there is no command that could take a signal.
    signal: name => (isReady ? link.signal(name) : kill()),
    ...(server.mounts !== undefined && { mounts: server.mounts }),
  }
}
