/**
 * QEMU in a process sandbox of its own: the system's programs, read-only, the files of the virtual machine, and the
 * sockets that it gets by descriptor. It sees nothing of the project. The network is the door's namespace, in which
 * every address is the gateway.
 */
import { closeSync, lstatSync, openSync, readlinkSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import type { Bytes } from '../../base/quantity.ts'
import { UndoStack } from '../../base/undo.ts'
import { CORES } from '../../limits/bounds.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import { SYSTEM_ROOTS } from '../../plan/system-view.ts'
import type { GuestPath } from '../../policy/files/path.ts'
import { MACHINE_FILES } from '../../protocol/guest-paths.ts'
import type { Running, StartOptions } from '../backend.ts'
import { bwrapFds } from '../process/guard.ts'
import { start } from '../process/process.ts'
import { shown } from './file-server.ts'
import type { GuestFiles } from './guest-files.ts'
import { LastOutput } from './last-output.ts'
import { type Accelerator, type MachineDescriptors, MIN_MEMORY, qemuArguments } from './qemu-arguments.ts'

export const KVM = '/dev/kvm'
const MIB = 2 ** 20
/** QEMU's own memory, and that of virtiofsd. They count towards the same limit as the guest. */
const OVERHEAD = 384 * MIB
const SCRATCH = (16 * MIB) as Bytes
/** QEMU has one for each connection of the guest. The guest's kernel bounds those of commands. */
const MOST_FILES = 16_384

export interface MachineOptions {
  readonly qemu: string
  readonly files: GuestFiles
  readonly plan: Plan
  readonly options: Pick<StartOptions, 'sandbox' | 'cacheDir' | 'placement'>
  readonly accelerator: Accelerator
  /** Undefined for a trial, which only boots. The caller closes them. */
  readonly descriptors: MachineDescriptors | undefined
  /** The device state of the snapshot that is restored. Undefined for a cold boot. */
  readonly state: number | undefined
}

export interface StartedMachine {
  readonly running: Running
  /** What the guest prints. */
  readonly console: LastOutput
  /** What QEMU prints. */
  readonly errors: LastOutput
  /** The number of `state` in QEMU. */
  readonly stateFd: number
}

export async function startMachine(machine: MachineOptions): Promise<StartedMachine> {
  const { files, plan, options, accelerator, descriptors, state } = machine
  const undo = new UndoStack()
  const console = new LastOutput()
  undo.push('the console', () => console.closeWriter())
  const errors = new LastOutput()
  undo.push('the errors', () => errors.closeWriter())
  const input = openSync('/dev/null', 'r')
  undo.push('an input', () => closeSync(input))
  const kvm = accelerator === 'kvm' ? openSync(KVM, 'r+') : undefined
  if (kvm !== undefined) undo.push(KVM, () => closeSync(kvm))
  const own = kvm === undefined ? [] : [kvm]
  const named = Object.entries(descriptors ?? {})
  const restored = state === undefined ? [] : [state]
  const firstFd = bwrapFds(options.placement.joinFds.length).firstExtra
  const numbers = named.map(([name], i) => [name, firstFd + own.length + i])
  try {
    const running = await start(boxPlan(plan, files, kvm === undefined ? undefined : firstFd), {
      sandbox: { ...options.sandbox, run: `${options.sandbox.run}-vm` },
      cacheDir: options.cacheDir,
      stdio: [input, console.writer, errors.writer],
      execDaemon: false,
      placement: options.placement,
      program: {
        fds: [...own, ...named.map(([, fd]) => fd as number), ...restored],
        argv: () => commandLine(machine, descriptors && (Object.fromEntries(numbers) as MachineDescriptors)),
      },
    })
    return { running, console, errors, stateFd: firstFd + own.length + named.length }
  } finally {
    await undo.unwind()
  }
}

/** `descriptors` have the numbers that QEMU knows. */
export const commandLine = (
  { qemu, accelerator, files, plan, state }: Omit<MachineOptions, 'descriptors' | 'options'>,
  descriptors: MachineDescriptors | undefined,
): string[] =>
  qemuArguments(
    {
      qemu,
      accelerator,
      kernel: `${MACHINE_FILES}/${files.kernel}`,
      initramfs: `${MACHINE_FILES}/${files.initramfs}`,
      daemon: `${MACHINE_FILES}/${files.daemon}`,
      descriptors,
      boot: state === undefined ? 'cold' : 'restored',
      cpus: Math.min(CORES, Math.max(1, Math.ceil(plan.limits.cpus))),
    },
    { ...plan, limits: { ...plan.limits, memory: guestMemory(plan.limits) } },
  )

/** What the guest gets of the memory limit. */
export function guestMemory({ memory }: Plan['limits']): Bytes {
  if (memory >= OVERHEAD + MIN_MEMORY) return (memory - OVERHEAD - (memory % MIB)) as Bytes
  throw new PenError('LIMIT', {
    what: `limits.memory is ${memory / MIB} MiB, and a virtual machine needs ${(OVERHEAD + MIN_MEMORY) / MIB} MiB`,
    hint: `raise it: --limit memory=${(OVERHEAD + MIN_MEMORY) / MIB}MiB; or use another isolation`,
  })
}

/** The host's programs and libraries, also when the guest's come from an image. */
function hostSystem(): Step[] {
  const roots = [...SYSTEM_ROOTS, '/etc/ld.so.cache', '/etc/alternatives'].flatMap((path): Step[] => {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat?.isSymbolicLink() === true)
      return [{ op: 'link', at: path as GuestPath, to: readlinkSync(path) }]
    return stat === undefined ? [] : [shown(path, path)]
  })
  return [...roots, { op: 'devices', at: '/dev' as GuestPath }, { op: 'processes', at: '/proc' as GuestPath }]
}

/** QEMU opens KVM by its path. The link leads to the descriptor that pen opened. */
function boxPlan(plan: Plan, files: GuestFiles, kvmFd: number | undefined): Plan {
  const scratch = (at: string): Step => ({ op: 'tmpfs', at: at as GuestPath, size: SCRATCH, mode: 0o755 })
  const link: Step[] =
    kvmFd === undefined ? [] : [{ op: 'link', at: KVM as GuestPath, to: `/proc/self/fd/${kvmFd}` }]
  return {
    ...plan,
    steps: [
      scratch('/run'),
      ...hostSystem(),
      ...link,
      scratch('/tmp'),
      shown(files.dir, MACHINE_FILES),
      { op: 'seal', at: '/' as GuestPath },
    ],
    // The file server has the project.
    layer: undefined,
    argv: [],
    cwd: '/' as GuestPath,
    env: [],
    listedExec: false,
    limits: { ...plan.limits, files: MOST_FILES },
  }
}
