/** The command line of QEMU. Pure. Every value comes from the plan or from pen: the guest chooses none. */
import type { Plan } from '../../plan/plan.ts'
import { kernelWord, PORT_NAME, PROJECT_TAG, TREE_TAG } from './initramfs.ts'

export type Accelerator = 'kvm' | 'tcg'

/** Connected sockets: to the two file servers, and to the supervisor. */
export interface MachineSockets {
  readonly tree: number
  readonly project: number
  readonly orders: number
}

export interface Machine {
  readonly qemu: string
  readonly accelerator: Accelerator
  /** Paths in QEMU's box. */
  readonly kernel: string
  readonly initramfs: string
  /** Undefined for a trial, which only boots. */
  readonly sockets: MachineSockets | undefined
  readonly cpus: number
}

const MIB = 2 ** 20
/** A smaller guest does not boot. */
export const MIN_MEMORY = 256 * MIB

export function qemuArguments(
  machine: Machine,
  { limits, network, workspace }: Pick<Plan, 'limits' | 'network' | 'workspace'>,
): string[] {
  const memory = `${Math.floor(limits.memory / MIB)}M`
  const online = network.kind === 'gateway'
  const guestWords =
    machine.sockets === undefined ? ['PEN_TRIAL=1'] : [`PEN_PROJECT=${kernelWord(workspace)}`]
  return [
    machine.qemu,
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none'],
    // QEMU itself starts no program, and changes neither its user nor its priorities.
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...['-machine', 'q35,memory-backend=ram,usb=off,vmport=off,hpet=off'],
    ...['-accel', machine.accelerator === 'kvm' ? 'kvm' : 'tcg,thread=multi,tb-size=128'],
    ...['-cpu', machine.accelerator === 'kvm' ? 'host' : 'max'],
    ...['-smp', String(machine.cpus), '-m', memory],
    // Shared with virtiofsd, which reads and writes the guest's buffers.
    ...['-object', `memory-backend-memfd,id=ram,size=${memory},share=on`],
    ...['-kernel', machine.kernel, '-initrd', machine.initramfs],
    ...['-append', [...kernelWords(limits, online), ...guestWords].join(' ')],
    ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
    ...['-object', 'rng-builtin,id=entropy', '-device', 'virtio-rng-pci,rng=entropy'],
    ...(machine.sockets === undefined ? [] : sandboxDevices(machine.sockets)),
    ...(online ? ['-netdev', 'user,id=net', '-device', 'virtio-net-pci,netdev=net,romfile='] : []),
  ]
}

const sandboxDevices = ({ tree, project, orders }: MachineSockets): string[] => [
  ...['-device', 'virtio-serial-pci,max_ports=2'],
  ...['-chardev', `socket,id=orders,fd=${orders}`],
  ...['-device', `virtserialport,chardev=orders,nr=1,name=${PORT_NAME}`],
  ...fileDevice(TREE_TAG, tree),
  ...fileDevice(PROJECT_TAG, project),
]

const fileDevice = (tag: string, fd: number): string[] => [
  ...['-chardev', `socket,id=${tag},fd=${fd}`],
  ...['-device', `vhost-user-fs-pci,chardev=${tag},tag=${tag},queue-size=1024`],
]

/** `panic=-1` with `-no-reboot`: a guest whose first process or kernel fails ends QEMU. */
function kernelWords({ pids, files }: Plan['limits'], online: boolean): string[] {
  return [
    'console=ttyS0',
    'quiet',
    'panic=-1',
    'no_timer_check',
    'random.trust_cpu=on',
    `PEN_PROCESSES=${pids}`,
    `PEN_FILES=${files}`,
    `PEN_NETWORK=${online ? 1 : 0}`,
  ]
}
