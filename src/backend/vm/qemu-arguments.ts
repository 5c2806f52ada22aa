/** The command line of QEMU. Pure. Every value comes from the plan or from pen: the guest chooses none. */
import type { Plan } from '../../plan/plan.ts'
import { PORT_NAME } from './initramfs.ts'

export type Accelerator = 'kvm' | 'tcg'

/** Descriptors that QEMU inherits. */
export interface MachineDescriptors {
  /** Connected sockets: to the two file servers, and two to the supervisor. */
  readonly tree: number
  readonly project: number
  readonly orders: number
  readonly monitor: number
  /** The guest's memory. */
  readonly memory: number
}

/** Where files are plugged into a guest that runs: the devices of a snapshot cannot include them. */
export const SLOTS = { tree: 'slot1', project: 'slot2' } as const

export interface Machine {
  readonly qemu: string
  readonly accelerator: Accelerator
  /** Paths in QEMU's box. */
  readonly kernel: string
  readonly initramfs: string
  /** The disk with the exec daemon. */
  readonly daemon: string
  /** Undefined for a trial, which only boots. */
  readonly descriptors: MachineDescriptors | undefined
  /** A machine that is restored waits for its snapshot. */
  readonly boot: 'cold' | 'restored'
  readonly cpus: number
}

const MIB = 2 ** 20
/** A smaller guest does not boot. */
export const MIN_MEMORY = 256 * MIB

export function qemuArguments(
  machine: Machine,
  { limits, network }: Pick<Plan, 'limits' | 'network'>,
): string[] {
  const { descriptors } = machine
  const memory = `${Math.floor(limits.memory / MIB)}M`
  const online = network.kind === 'gateway'
  const backing =
    descriptors === undefined
      ? 'memory-backend-memfd'
      : `memory-backend-file,mem-path=/proc/self/fd/${descriptors.memory}`
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
    ...['-object', `${backing},id=ram,size=${memory},share=on`],
    ...['-kernel', machine.kernel, '-initrd', machine.initramfs],
    ...[
      '-append',
      [
        ...KERNEL_WORDS,
        ...(machine.accelerator === 'tcg' ? [LPJ] : []),
        descriptors === undefined ? 'PEN_TRIAL=1' : `PEN_NETWORK=${online ? 1 : 0}`,
      ].join(' '),
    ],
    ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
    ...['-object', 'rng-builtin,id=entropy', '-device', 'virtio-rng-pci,rng=entropy'],
    ...(descriptors === undefined ? [] : sandboxDevices(machine.daemon, descriptors)),
    ...(online ? ['-netdev', 'user,id=net', '-device', 'virtio-net-pci,netdev=net,romfile='] : []),
    ...(machine.boot === 'restored' ? ['-incoming', 'defer'] : []),
  ]
}

const sandboxDevices = (daemon: string, { tree, project, orders, monitor }: MachineDescriptors): string[] => [
  ...['-drive', `if=none,id=daemon,file=${daemon},format=raw,readonly=on`],
  ...['-device', 'virtio-blk-pci,drive=daemon'],
  ...['-chardev', `socket,id=monitor,fd=${monitor}`, '-mon', 'chardev=monitor,mode=control'],
  // What the guest frees goes back to the host.
  ...['-device', 'virtio-balloon-pci,free-page-reporting=on'],
  ...['-device', 'virtio-serial-pci,max_ports=2'],
  ...['-chardev', `socket,id=orders,fd=${orders}`],
  ...['-device', `virtserialport,chardev=orders,nr=1,name=${PORT_NAME}`],
  ...Object.values(SLOTS).flatMap((id, i) => [
    '-device',
    `pcie-root-port,id=${id},chassis=${i + 1},slot=${i + 1}`,
  ]),
  ...['-chardev', `socket,id=tree,fd=${tree}`, '-chardev', `socket,id=project,fd=${project}`],
]

/**
 * How long the kernel's busy loops take, for about 2.5 GHz. Measuring it takes two seconds for every further vCPU when
 * QEMU translates. Only drivers of real devices need it to be right.
 */
const LPJ = 'lpj=10000000'

/** `panic=-1` with `-no-reboot`: a guest whose first process or kernel fails ends QEMU. */
const KERNEL_WORDS = ['console=ttyS0', 'quiet', 'panic=-1', 'no_timer_check', 'random.trust_cpu=on']
