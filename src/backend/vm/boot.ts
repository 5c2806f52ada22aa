/**
 * Brings a machine to the point where its guest waits for a sandbox: from a snapshot, or by a cold boot. A snapshot that
 * does not load is removed, and the same start goes on with a cold boot.
 */
import { closeSync, ftruncateSync, readFileSync, statSync } from 'node:fs'
import { memoryFile } from '../../base/kernel/descriptor.ts'
import { kernelRelease } from '../../base/kernel/kernel-facts.ts'
import { socketPair } from '../../base/kernel/socket.ts'
import { phase } from '../../base/phases.ts'
import { WAITING } from '../../protocol/guest-line.ts'
import type { Running } from '../backend.ts'
import { forgetMade } from './guest-files.ts'
import type { LastOutput } from './last-output.ts'
import {
  commandLine,
  guestMemory,
  type MachineOptions,
  type StartedMachine,
  startMachine,
} from './machine.ts'
import { Monitor } from './monitor.ts'
import { attachFiles, openMonitor, writeState } from './qemu-orders.ts'
import { type Snapshot, SnapshotCache } from './snapshot.ts'

/** Connected sockets of QEMU. The caller closes them. */
export interface MachineSockets {
  readonly tree: number
  readonly project: number
  readonly orders: number
}

export interface BootedMachine {
  readonly running: Running
  readonly console: LastOutput
  readonly errors: LastOutput
  /** Starts QEMU, unless it runs already, and resolves when the guest waits. */
  boot(): Promise<void>
  /** Plugs in the files that the servers serve. */
  attachFiles(): Promise<void>
  /** The start failed. The next one does not use what this one used. */
  distrust(): void
}

type Options = Omit<MachineOptions, 'descriptors' | 'state'>

/** Loading takes a third of a second. */
const RESTORE_MS = 20_000
const UNHEARD = { record: () => undefined }

export async function bootMachine(machine: Options, sockets: MachineSockets): Promise<BootedMachine> {
  const cache = new SnapshotCache(machine.options.cacheDir, keyOf(machine))
  const snapshot = cache.open()
  if (snapshot !== undefined) {
    const restored = await restore(machine, sockets, snapshot).finally(() => snapshot.close())
    if (restored !== undefined)
      return { ...restored, boot: async () => undefined, distrust: () => cache.forget() }
    phase('the snapshot was not used')
    cache.forget()
  }
  return await coldMachine(machine, sockets, cache)
}

/** Everything that a snapshot depends on. Descriptors have other numbers at every start, and do not matter. */
function keyOf(machine: Options): string {
  const { qemu, files } = machine
  const none = { tree: 0, project: 0, orders: 0, monitor: 0, memory: 0 }
  const { dev, ino, size, mtimeMs } = statSync(qemu)
  const digest = (name: string): string =>
    new Bun.CryptoHasher('sha256').update(readFileSync(`${files.dir}/${name}`)).digest('hex')
  return JSON.stringify([
    ...commandLine({ ...machine, state: undefined }, none),
    ...[
      dev,
      ino,
      size,
      mtimeMs,
      kernelRelease(),
      digest(files.kernel),
      digest(files.initramfs),
      files.daemon,
    ],
  ])
}

interface Begun extends StartedMachine, Pick<BootedMachine, 'attachFiles'> {
  readonly monitor: Monitor
  /** The caller closes it. */
  readonly memory: number
}

async function begin(
  machine: Options,
  sockets: MachineSockets,
  snapshot: Snapshot | undefined,
): Promise<Begun> {
  const memory = memoryFile()
  ftruncateSync(memory, guestMemory(machine.plan.limits))
  const [ours, theirs] = socketPair()
  const monitor = new Monitor(ours)
  try {
    const started = await startMachine({
      ...machine,
      descriptors: { ...sockets, monitor: theirs, memory },
      state: snapshot?.state,
    })
    void started.running.ended.catch(() => undefined).then(() => monitor.close())
    return {
      ...started,
      monitor,
      memory,
      attachFiles: () => attachFiles(monitor),
    }
  } catch (error) {
    monitor.close()
    closeSync(memory)
    throw error
  } finally {
    closeSync(theirs)
  }
}

async function restore(
  machine: Options,
  sockets: MachineSockets,
  snapshot: Snapshot,
): Promise<Begun | undefined> {
  const begun = await begin(machine, sockets, snapshot)
  const { running, monitor, memory } = begun
  const timer = setTimeout(() => running.kill(), RESTORE_MS)
  try {
    // The guest has neither files nor a network that answers, so it need not wait for the supervisor.
    running.begin(UNHEARD)
    if (!snapshot.load(memory)) throw new Error('the snapshot is damaged')
    phase('memory loaded')
    const resumed = monitor.event('RESUME')
    // QEMU may end before anything waits for it.
    resumed.catch(() => undefined)
    await openMonitor(monitor)
    await monitor.command('migrate-incoming', { uri: `fd:${begun.stateFd}` })
    await resumed
    phase('guest restored')
    return begun
  } catch {
    running.kill()
    await running.ended.catch(() => undefined)
    return undefined
  } finally {
    clearTimeout(timer)
    closeSync(memory)
  }
}

async function coldMachine(
  machine: Options,
  sockets: MachineSockets,
  cache: SnapshotCache,
): Promise<BootedMachine> {
  const begun = await begin(machine, sockets, undefined)
  const { running, console, monitor, memory } = begun
  void running.ended.catch(() => undefined).then(() => closeSync(memory))
  return {
    ...begun,
    boot: async () => {
      running.begin(UNHEARD)
      await openMonitor(monitor)
      await console.saw(WAITING)
      phase('guest booted')
      await takeSnapshot(cache, monitor, memory)
    },
    distrust: () => forgetMade(machine.files),
  }
}

/** Without a snapshot the sandbox starts all the same, as when the disk is full. */
async function takeSnapshot(cache: SnapshotCache, monitor: Monitor, memory: number): Promise<void> {
  try {
    // This stops the guest.
    await cache.save(memory, state => writeState(monitor, state))
    phase('snapshot taken')
  } catch (error) {
    phase(`no snapshot: ${error instanceof Error ? error.message : ''}`)
  }
  await monitor.command('cont')
}
