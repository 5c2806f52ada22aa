/**
 * The vm backend: a virtual machine with its own kernel. QEMU and virtiofsd are each in a process sandbox. The guest sees
 * the tree that a process sandbox would see, and its first process is pen's exec daemon.
 */
import { closeSync, writeSync } from 'node:fs'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { socketPair } from '../../base/kernel/socket.ts'
import { UndoStack } from '../../base/undo.ts'
import { probeLimits } from '../../limits/probe.ts'
import type { Capabilities, Weaker } from '../../plan/gaps.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Policy } from '../../policy/policy.ts'
import type { DaemonSetup } from '../../protocol/exec-order.ts'
import { writeGuestLine } from '../../protocol/guest-line.ts'
import { PEN_INSIDE } from '../../protocol/guest-paths.ts'
import type { Backend, Running, StartOptions } from '../backend.ts'
import { DaemonLink } from '../daemon-link.ts'
import { DaemonSocket } from '../daemon-socket.ts'
import { prepareMapping } from '../mounts/id-mapping.ts'
import { ownLoader } from '../process/exec-daemon.ts'
import { withInsidePath } from '../process/inside-path.ts'
import { holdsPrograms } from '../process/listed.ts'
import { seccompFilter } from '../seccomp/filter.ts'
import { chooseAccelerator } from './accelerator.ts'
import { bootMachine } from './boot.ts'
import { makeBrokerDir } from './broker-clients.ts'
import { startFileServer } from './file-server.ts'
import { guestFiles, prepareGuestFiles } from './guest-files.ts'
import { fromImage, imageEngine } from './image-tree.ts'
import { GUEST_NETWORK } from './initramfs.ts'
import { guestMemory } from './machine.ts'
import { asRoot, grantedPlaces, withHostPackages } from './root-user.ts'
import { runningMachine } from './running.ts'

export const QEMU = process.arch === 'arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64'
/** Debian's. */
export const QEMU_PACKAGE = process.arch === 'arm64' ? 'qemu-system-arm' : 'qemu-system-x86'

/** QEMU, virtiofsd and their threads. The guest's kernel bounds the guest's processes, which are none of the host's. */
const OWN_PROCESSES = 128

/** With an image in the config, the guest's programs come from it, and otherwise from the host. */
export const vmBackend = ({ image, vm }: Pick<Policy, 'image' | 'vm'>): Backend => ({
  name: 'vm',
  network: 'made-by-pen',
  daemonOnly: true,
  ownProcesses: OWN_PROCESSES,
  slowStart: 'starting the virtual machine …',
  prepareFiles: async (cacheDir, tell, from) => (await prepareGuestFiles(cacheDir, tell, from)).dir,
  // Only the host's root needs an id mapping.
  warm: () => (isHostRoot() ? prepareMapping() : undefined),
  probe: async () => capabilities(image !== 'default', vm.root),
  start,
  ...(image !== 'default' && { engine: imageEngine }),
})

function capabilities(images: boolean, root: boolean): Capabilities {
  requireQemu()
  return {
    backend: 'vm',
    isolation: 'vm',
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    bridge: false,
    seccomp: true,
    // By the guest's kernel. A start fails if that kernel cannot. pen does not look for the programs of an image here.
    listedExec: !images && !root,
    images,
    mapsUser: true,
    daemonUser: true,
    ports: true,
    sshAgent: false,
    review: true,
    // The guest has no more memory than QEMU gives it, and its kernel counts the processes of its user.
    limits: { ...probeLimits(), memory: 'kernel', pids: 'kernel' },
    weaker: [
      {
        name: 'files-late',
        how: 'the guest sees a change in the project within a second and without inotify, elsewhere maybe not',
      },
      {
        name: 'limits-silent',
        how: 'the guest bounds memory, processes and open files, and reports no hit',
      },
      {
        name: 'sockets-apart',
        how: 'a socket of the host that you grant does not connect from the guest: use host.pen.internal:PORT',
      },
      {
        name: 'udp6-silent',
        how: 'a refused IPv6 datagram is recorded, and the program inside gets no error',
      },
      ...(root ? [ROOT] : []),
    ],
  }
}

const ROOT: Weaker = {
  name: 'guest-root',
  how: 'commands are root of the guest: its kernel bounds neither their processes nor their open files',
}

function requireQemu(): string {
  const qemu = findTool(QEMU)
  if (qemu !== undefined) return qemu
  throw missingTool(
    QEMU,
    `install QEMU: apt-get install ${QEMU_PACKAGE}; on other distributions pen doctor has the command`,
  )
}

async function start(planned: Plan, options: StartOptions): Promise<Running> {
  const qemu = requireQemu()
  guestMemory(planned.limits)
  const files = await guestFiles(options.cacheDir, line => process.stderr.write(`pen: ${line}\n`))
  const { image } = options.container
  const { root } = options.rules.policy.vm
  const ofHost = root && image === undefined ? withHostPackages(planned) : planned
  const rooted = image === undefined ? ofHost : await fromImage(ofHost, image, files, options)
  const plan = withGateway(withInsidePath(root ? asRoot(rooted) : rooted))
  const accelerator = await chooseAccelerator({ qemu, files, plan, options })
  const undo = new UndoStack()
  const sockets = new UndoStack()
  try {
    const server = await startFileServer(files, plan, root, options)
    undo.push('the file server', async () => await endOf(server.running))
    sockets.push('the connections to the file servers', () => server.sockets.forEach(closeSync))
    const [ours, port] = socketPair()
    const adopted = undo.push('the port', () => closeSync(ours))
    sockets.push('the port', () => closeSync(port))
    const [tree, project] = server.sockets
    const machine = await bootMachine(
      { qemu, files, plan, options, accelerator },
      { tree, project, orders: port },
    )
    const socket = new DaemonSocket()
    const link = new DaemonLink(socket, daemonSetup(plan, root))
    undo.push('the exec daemon', () => link.close())
    const wake = (): void => {
      writeSync(ours, guestLine(plan, root))
      adopted()
      socket.adopt(ours)
    }
    const brokerDir = makeBrokerDir(server.inside, options.sandbox.run, undo)
    return {
      ...runningMachine({ machine, server, link, wake, undo, brokerDir }),
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

const guestLine = (plan: Plan, root: boolean): string => {
  const { workspace, limits, steps } = plan
  const shared = steps.find(step => step.op === 'tmpfs' && step.at === '/dev/shm')
  return writeGuestLine({
    project: workspace,
    processes: limits.pids,
    files: limits.files,
    root: root ? grantedPlaces(plan) : null,
    shared: shared?.op === 'tmpfs' ? shared.size : 0,
    time: Date.now(),
    seed: crypto.getRandomValues(new Uint8Array(64)).toHex(),
  })
}

const daemonSetup = (plan: Plan, root: boolean): DaemonSetup => ({
  root,
  user: root ? undefined : plan.user,
  userDirectories: [],
  env: plan.env.map(({ name, value }) => ({ name, value })),
  seccomp: root ? undefined : seccompFilter({ exec: plan.listedExec ? 'listed' : 'any' }),
  emptyBounding: !root,
  ...(plan.listedExec && listedPrograms(plan)),
})

/** The mounts are those of a process sandbox, and hold programs in the same places. */
function listedPrograms({ steps, executable }: Plan): Pick<DaemonSetup, 'executable' | 'noexec'> {
  const places = steps.flatMap(step => (step.op === 'seal' ? [] : [step.at]))
  const programs = [...places.filter(path => holdsPrograms(steps, path)), PEN_INSIDE]
  return { executable: [...executable, ...ownLoader(), PEN_INSIDE], noexec: { places, programs } }
}
