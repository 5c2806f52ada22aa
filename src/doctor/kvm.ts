/** KVM, by running a guest of a few bytes. pen makes no virtual machines yet: what does not work here is at most weak. */
import { readFileSync, statSync } from 'node:fs'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import type { Distribution } from './distribution.ts'
import { type Finding, ok, weak } from './finding.ts'
import { GUEST_MODE, KVM, type Trial } from './guest.ts'
import { isInContainer, type Machine } from './machine.ts'

const ID = 'kvm'
const UNUSED = 'only virtual machines need it, and pen makes none yet'
const TIME_LIMIT_MS = 5000
/** A kernel that does not even let go of the process that was killed is not waited for. */
const PATIENCE_MS = 8000

/** What the machine says of itself; it only matters where the trial went wrong. */
export interface Surroundings {
  readonly arch: string
  /** As the processor names them: `vmx`, `svm`, `hypervisor`. */
  readonly features: ReadonlySet<string>
  readonly isContainer: boolean
  /** The group that may open the device; undefined where none but root may. */
  readonly group: string | undefined
  readonly uid: number | undefined
}

export async function checkKvm({ distribution }: Machine): Promise<readonly Finding[]> {
  return [judgeKvm(await trial(), surroundings(), distribution)]
}

async function trial(): Promise<Trial | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, PATIENCE_MS, undefined)
  })
  const child = capture([...ownProgram(), GUEST_MODE], {
    env: {},
    timeoutMs: TIME_LIMIT_MS,
    maxOutput: 4096,
    cwd: '/',
  }).then(({ code, stdout }) => (code === 0 ? (JSON.parse(stdout) as Trial) : undefined))
  try {
    return await Promise.race([child, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Undefined: whoever tried was ended, or did not come back. */
export function judgeKvm(tried: Trial | undefined, around: Surroundings, system: Distribution): Finding {
  if (tried?.at === 'ran') return ok(ID, 'a guest was run by KVM', UNUSED)
  if (tried?.at === 'processor' && tried.errno === undefined)
    return ok(
      ID,
      'KVM makes virtual machines',
      `whether it runs one is not tried on ${around.arch}; ${UNUSED}`,
    )
  const { what, fix } = trouble(tried, around, system)
  return weak(ID, what, UNUSED, fix)
}

interface Trouble {
  readonly what: string
  readonly fix: string
}

function trouble(tried: Trial | undefined, around: Surroundings, system: Distribution): Trouble {
  if (tried?.at === 'open') {
    if (tried.errno === 'EACCES' || tried.errno === 'EPERM')
      return { what: `you may not open ${KVM}`, fix: letIn(around, system) }
    if (tried.errno === 'ENOENT') return { what: `there is no ${KVM}`, fix: bringKvm(around) }
    return { what: `${KVM} cannot be opened (${tried.errno})`, fix: bringKvm(around) }
  }
  const EBUSY = '16'
  if (tried?.errno === EBUSY)
    return { what: 'KVM makes no virtual machine', fix: 'stop the other hypervisor that has the processor' }
  if (tried?.at === 'create') {
    const why = tried.errno === undefined ? 'another version of its interface' : `errno ${tried.errno}`
    return { what: `${KVM} makes no virtual machine (${why})`, fix: bringKvm(around) }
  }
  const how =
    tried === undefined
      ? 'a guest of a few bytes did not come back'
      : tried.errno === undefined
        ? 'a guest of a few bytes did not get to its end'
        : `errno ${tried.errno}`
  return { what: `KVM makes virtual machines and does not run them: ${how}`, fix: runThem(around) }
}

function letIn({ isContainer, group, uid }: Surroundings, { installer }: Distribution): string {
  if (uid === 0)
    return isContainer ? PASS_DEVICE : 'allow the device in the cgroup or security module that pen runs under'
  const name = group ?? 'kvm'
  const enter = installer === 'apk' ? `sudo addgroup "$USER" ${name}` : `sudo usermod -aG ${name} "$USER"`
  const open = group === undefined ? `sudo chgrp ${name} ${KVM} && sudo chmod 660 ${KVM} && ` : ''
  return `${open}${enter}, then log in again`
}

const PASS_DEVICE = `start the container that pen runs in with --device ${KVM}, or run pen outside of it`
const NESTED =
  'this is a virtual machine itself: have nested virtualization switched on where it runs (kvm_intel or kvm_amd with nested=1, and the processor passed on as the host has it)'

function bringKvm({ isContainer, features, arch }: Surroundings): string {
  if (isContainer) return PASS_DEVICE
  if (features.has('vmx')) return 'sudo modprobe kvm_intel'
  if (features.has('svm')) return 'sudo modprobe kvm_amd'
  if (features.has('hypervisor')) return NESTED
  if (arch !== 'x64') return 'use a kernel with KVM, started with the privileges of a hypervisor (EL2)'
  return 'switch virtualization on in the firmware of the machine (Intel VT-x, AMD SVM), then sudo modprobe kvm_intel or kvm_amd'
}

const runThem = ({ features }: Surroundings): string =>
  features.has('hypervisor')
    ? `${NESTED}, or use a machine that is not virtual`
    : 'look at the log of the kernel (dmesg) in this moment, and update kernel and firmware'

function surroundings(): Surroundings {
  return {
    arch: process.arch,
    features: new Set(/^flags\s*:(.*)$/m.exec(read('/proc/cpuinfo'))?.[1]?.split(' ')),
    isContainer: isInContainer(),
    group: groupOf(KVM),
    uid: process.getuid?.(),
  }
}

/** A group of its own that may read and write. What root's group may do helps nobody. */
function groupOf(device: string): string | undefined {
  const found = statSync(device, { throwIfNoEntry: false })
  if (found === undefined || found.gid === 0 || (found.mode & 0o060) !== 0o060) return undefined
  const line = new RegExp(`^([a-z_][a-z0-9_-]*):[^:]*:${found.gid}:`, 'm')
  return line.exec(read('/etc/group'))?.[1]
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
