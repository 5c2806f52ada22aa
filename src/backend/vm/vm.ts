/**
 * The vm backend: a virtual machine with its own kernel. QEMU and virtiofsd are each in a process sandbox. The guest sees
 * the tree that a process sandbox would see, and its first process is pen's exec daemon.
 */
import { closeSync } from 'node:fs'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { socketPair } from '../../base/kernel/socket.ts'
import { UndoStack } from '../../base/undo.ts'
import { probeLimits } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'
import type { Plan } from '../../plan/plan.ts'
import type { DaemonSetup } from '../../protocol/exec-order.ts'
import type { Backend, Running, StartOptions } from '../backend.ts'
import { DaemonLink } from '../daemon-link.ts'
import { adoptDaemonSocket } from '../daemon-socket.ts'
import { prepareMapping } from '../mounts/id-mapping.ts'
import { withInsidePath } from '../process/inside-path.ts'
import { seccompFilter } from '../seccomp/filter.ts'
import { chooseAccelerator } from './accelerator.ts'
import { startFileServer } from './file-server.ts'
import { guestFiles } from './guest-files.ts'
import { GUEST_NETWORK } from './initramfs.ts'
import { guestMemory, startMachine } from './machine.ts'
import { runningMachine } from './running.ts'

const QEMU = process.arch === 'arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64'

export const vmBackend: Backend = {
  name: 'vm',
  network: 'made-by-pen',
  daemonOnly: true,
  slowStart: 'starting the virtual machine …',
  // Only the host's root needs an id mapping.
  warm: () => (isHostRoot() ? prepareMapping() : undefined),
  probe: async () => capabilities(),
  start,
}

function capabilities(): Capabilities {
  requireQemu()
  return {
    backend: 'vm',
    isolation: 'vm',
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    bridge: false,
    seccomp: true,
    listedExec: false,
    images: false,
    mapsUser: true,
    daemonUser: true,
    ports: false,
    // The guest has no more memory than QEMU gives it, and its kernel counts the processes of its user.
    limits: { ...probeLimits(), memory: 'kernel', pids: 'kernel' },
    weaker: [
      {
        name: 'files-late',
        how: 'the guest sees a change in the project within a second and without inotify, elsewhere maybe not',
      },
      {
        name: 'no-file-broker',
        how: 'files that you grant while the sandbox runs are there after its next start',
      },
    ],
  }
}

function requireQemu(): string {
  const qemu = findTool(QEMU)
  if (qemu !== undefined) return qemu
  throw missingTool(
    QEMU,
    'install QEMU: apt-get install qemu-system-x86, dnf install qemu-kvm, pacman -S qemu-base or apk add qemu-system-x86_64',
  )
}

async function start(planned: Plan, options: StartOptions): Promise<Running> {
  const qemu = requireQemu()
  guestMemory(planned.limits)
  const files = await guestFiles(options.cacheDir, line => process.stderr.write(`pen: ${line}\n`))
  const plan = withGateway(withInsidePath(planned))
  const accelerator = await chooseAccelerator({ qemu, files, plan, options })
  const undo = new UndoStack()
  const sockets = new UndoStack()
  try {
    const server = await startFileServer(files, plan, options)
    undo.push('the file server', async () => await endOf(server.running))
    sockets.push('the connections to the file servers', () => server.sockets.forEach(closeSync))
    const [ours, port] = socketPair()
    sockets.push('the port', () => closeSync(port))
    const link = new DaemonLink(adoptDaemonSocket(ours), daemonSetup(plan))
    undo.push('the exec daemon', () => link.close())
    const started = await startMachine({
      qemu,
      files,
      plan,
      options,
      accelerator,
      sockets: { tree: server.sockets[0], project: server.sockets[1], orders: port },
    })
    return {
      ...runningMachine({
        machine: started.running,
        console: started.console,
        server: server.running,
        link,
        undo,
      }),
      notes: accelerator === 'kvm' ? [] : [SLOW],
    }
  } catch (error) {
    await undo.unwind()
    throw error
  } finally {
    await sockets.unwind()
  }
}

const SLOW = 'no guest runs on KVM here: QEMU translates every instruction, which is several times slower'

async function endOf(running: Running): Promise<void> {
  running.kill()
  await running.ended.catch(() => undefined)
}

/** The gateway's proxy is on the far side of the guest's network, not on its loopback. */
const withGateway = (plan: Plan): Plan => ({
  ...plan,
  env: plan.env.map(variable =>
    variable.name === 'PEN_PROXY'
      ? { ...variable, value: variable.value.replace('127.0.0.1', GUEST_NETWORK.gateway) }
      : variable,
  ),
})

const daemonSetup = (plan: Plan): DaemonSetup => ({
  user: plan.user,
  userDirectories: [],
  env: plan.env.map(({ name, value }) => ({ name, value })),
  seccomp: seccompFilter({ exec: 'any' }),
  emptyBounding: true,
})
