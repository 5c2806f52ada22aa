/** Checks what a sandbox needs of the kernel. */
import { statSync } from 'node:fs'
import { Staging } from '../backend/process/staging.ts'
import { findTool } from '../base/find-tool.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { kernelRelease, landlockAbi } from '../base/kernel/kernel-facts.ts'
import { UndoStack } from '../base/undo.ts'
import { boundsProcessesByNamespace } from '../limits/probe.ts'
import { type Distribution, installLine } from './distribution.ts'
import {
  fails,
  failureOf,
  hintOf,
  isInContainer,
  type Machine,
  messageOf,
  ok,
  type Result,
  type Results,
  textOf,
  weak,
} from './finding.ts'

export function checkKernel(release = kernelRelease(), platform: string = process.platform): Result {
  if (platform !== 'linux')
    return fails(
      `${platform} ${release}`,
      'sandboxes need Linux',
      'run pen on Linux, or in a Linux virtual machine',
    )
  const named = `Linux ${release} on ${process.arch}`
  if (boundsProcessesByNamespace(release)) return ok(named)
  return weak(
    named,
    'before 5.14, without a cgroup, pen checks the number of processes instead of the kernel',
    'update the kernel to 5.14 or newer',
  )
}

/** Only tools.exec "listed" needs Landlock, so its absence is no failure. */
export function checkLandlock(abi = landlockAbi()): Result {
  if (abi > 0) return ok(`Landlock has ABI ${abi}`)
  return weak(
    'Landlock is missing in the kernel or disabled',
    'tools.exec "listed" cannot be enforced here and stops as a gap',
    'boot Linux 5.13 or newer with landlock in the lsm= parameter',
  )
}

/** Creates a user namespace. If that fails, finds out what blocks it. */
export async function checkUserNamespaces({ distribution }: Machine): Promise<Result> {
  const unshare = findTool('unshare')
  const program = findTool('true')
  if (unshare === undefined || program === undefined)
    return fails('unshare is missing', undefined, installLine(distribution, 'util-linux', 'coreutils'))
  const failure = await failureOf([unshare, '--user', '--map-root-user', '--net', '--', program])
  if (failure === undefined) return ok('user and network namespaces work')
  const { why, fix } = blockedBy(kernelAnswers(), distribution)
  return fails(`could not create a user namespace (${failure})`, why, fix)
}

/** Kernel settings that can block user namespaces; undefined if the kernel has no such setting. */
interface Switches {
  readonly apparmor: string | undefined
  readonly clone: string | undefined
  readonly most: string | undefined
  readonly container: boolean
}

function kernelAnswers(): Switches {
  const read = (path: string): string | undefined => textOf(path).trim() || undefined
  return {
    apparmor: read('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
    clone: read('/proc/sys/kernel/unprivileged_userns_clone'),
    most: read('/proc/sys/user/max_user_namespaces'),
    container: isInContainer(),
  }
}

export function blockedBy(
  { apparmor, clone, most, container }: Switches,
  { id, name }: Distribution,
): { readonly why: string; readonly fix: string } {
  if (most === '0')
    return { why: 'user.max_user_namespaces is 0', fix: lasting('user.max_user_namespaces=15000') }
  if (clone === '0')
    return {
      why: `kernel.unprivileged_userns_clone is 0: ${name} forbids them to normal users`,
      fix: lasting('kernel.unprivileged_userns_clone=1'),
    }
  if (apparmor === '1')
    return {
      why: `AppArmor forbids them to programs without a profile (${id === 'ubuntu' ? 'Ubuntu since 23.10' : name})`,
      fix: lasting('kernel.apparmor_restrict_unprivileged_userns=0'),
    }
  if (container)
    return {
      why: 'pen runs in a container, and the container engine forbids them',
      fix: 'start that container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run pen outside it',
    }
  return {
    why: 'user namespaces are missing in the kernel or blocked by a security module',
    fix: 'check dmesg, or use a kernel with CONFIG_USER_NS',
  }
}

/** Applies the setting now and after every reboot. */
const lasting = (setting: string): string =>
  `echo ${setting} | sudo tee /etc/sysctl.d/60-pen.conf && sudo sysctl --system`

/** Any user except root. Nothing runs as this user. */
const TEST_USER = { uid: 1000, gid: 1000 }

/** File systems must support id-mapped mounts if root starts a sandbox. */
export async function checkIdMapping({ project, scratch }: Machine): Promise<Results> {
  try {
    if (!isHostRoot()) return []
  } catch (error) {
    return fails(messageOf(error), undefined, hintOf(error))
  }
  // In another user's project, root runs the sandbox as that user and maps nothing.
  const workspace = project?.world.workspace
  const own = workspace !== undefined && statSync(workspace).uid === 0 ? workspace : undefined
  const places = [own, scratch].filter(path => path !== undefined)
  const undo = new UndoStack()
  try {
    const staging = new Staging(TEST_USER, undo)
    for (const path of places) staging.stage(path, 'directory', true)
    const where = own === undefined ? '' : 'the project and of '
    return ok(`id-mapped mounts work on the file systems of ${where}pen's state`)
  } catch (error) {
    return fails(messageOf(error), 'commands must not run as root', hintOf(error))
  } finally {
    await undo.unwind()
  }
}
