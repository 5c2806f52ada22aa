/** Checks KVM by running a tiny guest. Isolation "vm" also works without KVM, so a failure is only weak. */
import { statSync } from 'node:fs'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import type { Distribution } from './distribution.ts'
import { isInContainer, type Machine, ok, type Result, textOf, weak } from './finding.ts'
import { GUEST_MODE, KVM, type Trial } from './guest.ts'

const UNUSED = 'only isolation "vm" uses KVM, and is slower without it'
const TIME_LIMIT_MS = 5000
/** A broken kernel may not even release the killed process. pen stops waiting after this time. */
const GIVE_UP_MS = 8000

/** Facts about the machine, used to explain a failed trial. */
export interface HostFacts {
  readonly arch: string
  /** CPU flags such as `vmx`, `svm`, `hypervisor`. */
  readonly features: ReadonlySet<string>
  readonly isContainer: boolean
  /** The group that can open the device; undefined if only root can. */
  readonly group: string | undefined
  readonly uid: number | undefined
}

export const checkKvm = async ({ distribution }: Machine): Promise<Result> =>
  judgeKvm(await trial(), hostFacts(), distribution)

async function trial(): Promise<Trial | undefined> {
  const child = capture([...ownProgram(), GUEST_MODE], {
    env: {},
    timeoutMs: TIME_LIMIT_MS,
    maxOutput: 4096,
    cwd: '/',
  }).then(({ code, stdout }) => (code === 0 ? (JSON.parse(stdout) as Trial) : undefined))
  return await Promise.race([child, Bun.sleep(GIVE_UP_MS).then(() => undefined)])
}

/** `tried` is undefined if the process was killed or did not end. */
export function judgeKvm(tried: Trial | undefined, around: HostFacts, system: Distribution): Result {
  if (tried?.at === 'ran') return ok('KVM ran a guest', UNUSED)
  if (tried?.at === 'processor' && tried.errno === undefined)
    return ok('KVM creates virtual machines', `running one is not checked on ${around.arch}; ${UNUSED}`)
  const { what, fix } = trouble(tried, around, system)
  return weak(what, UNUSED, fix)
}

function trouble(
  tried: Trial | undefined,
  around: HostFacts,
  system: Distribution,
): { readonly what: string; readonly fix: string } {
  if (tried?.at === 'open') {
    if (tried.errno === 'EACCES' || tried.errno === 'EPERM')
      return { what: `no permission to open ${KVM}`, fix: letIn(around, system) }
    if (tried.errno === 'ENOENT') return { what: `${KVM} is missing`, fix: bringKvm(around) }
    return { what: `${KVM} cannot be opened (${tried.errno})`, fix: bringKvm(around) }
  }
  const EBUSY = '16'
  if (tried?.errno === EBUSY)
    return { what: 'KVM creates no virtual machine', fix: 'stop the other hypervisor that uses the CPU' }
  if (tried?.at === 'create') {
    const why = tried.errno === undefined ? 'unknown API version' : `errno ${tried.errno}`
    return { what: `${KVM} creates no virtual machine (${why})`, fix: bringKvm(around) }
  }
  const how =
    tried === undefined
      ? 'a tiny guest did not return'
      : tried.errno === undefined
        ? 'a tiny guest did not finish'
        : `errno ${tried.errno}`
  return { what: `KVM creates virtual machines but does not run them: ${how}`, fix: runThem(around) }
}

function letIn({ isContainer, group, uid }: HostFacts, { installer }: Distribution): string {
  if (uid === 0) return isContainer ? PASS_DEVICE : 'allow the device in the cgroup or security module of pen'
  const name = group ?? 'kvm'
  const enter = installer === 'apk' ? `sudo addgroup "$USER" ${name}` : `sudo usermod -aG ${name} "$USER"`
  const open = group === undefined ? `sudo chgrp ${name} ${KVM} && sudo chmod 660 ${KVM} && ` : ''
  return `${open}${enter}, then log in again`
}

const PASS_DEVICE = `start pen's container with --device ${KVM}, or run pen outside a container`
const NESTED =
  'this machine is virtual: enable nested virtualization on its host (kvm_intel or kvm_amd with nested=1, and CPU passthrough)'

function bringKvm({ isContainer, features, arch }: HostFacts): string {
  if (isContainer) return PASS_DEVICE
  if (features.has('vmx')) return 'sudo modprobe kvm_intel'
  if (features.has('svm')) return 'sudo modprobe kvm_amd'
  if (features.has('hypervisor')) return NESTED
  if (arch !== 'x64') return 'use a kernel with KVM that was booted in hypervisor mode (EL2)'
  return 'enable virtualization in the firmware (Intel VT-x, AMD SVM), then sudo modprobe kvm_intel or kvm_amd'
}

const runThem = ({ features }: HostFacts): string =>
  features.has('hypervisor')
    ? `${NESTED}, or use a physical machine`
    : 'check dmesg, and update kernel and firmware'

function hostFacts(): HostFacts {
  return {
    arch: process.arch,
    features: new Set(/^flags\s*:(.*)$/m.exec(textOf('/proc/cpuinfo'))?.[1]?.split(' ')),
    isContainer: isInContainer(),
    group: groupOf(KVM),
    uid: process.getuid?.(),
  }
}

/** The device's group if it can read and write. Root's group does not count. */
function groupOf(device: string): string | undefined {
  const found = statSync(device, { throwIfNoEntry: false })
  if (found === undefined || found.gid === 0 || (found.mode & 0o060) !== 0o060) return undefined
  const line = new RegExp(`^([a-z_][a-z0-9_-]*):[^:]*:${found.gid}:`, 'm')
  return line.exec(textOf('/etc/group'))?.[1]
}
