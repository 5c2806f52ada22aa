/** Checks user namespaces by creating one. If that fails, finds out what blocks them. */
import { findTool } from '../base/find-tool.ts'
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import { capture } from '../base/spawn.ts'
import { type Distribution, installLine } from './distribution.ts'
import { type Finding, fails, lastLine, ok } from './finding.ts'
import { isInContainer, type Machine } from './machine.ts'

const ID = 'user-namespaces'

export async function checkUserNamespaces({ distribution }: Machine): Promise<readonly Finding[]> {
  const unshare = findTool('unshare')
  const program = findTool('true')
  if (unshare === undefined || program === undefined)
    return [fails(ID, 'unshare is missing', undefined, installLine(distribution, 'util-linux', 'coreutils'))]
  const { code, stderr } = await capture([unshare, '--user', '--map-root-user', '--net', '--', program], {
    env: {},
    timeoutMs: 5000,
    cwd: '/',
  })
  if (code === 0) return [ok(ID, 'user and network namespaces work')]
  const { why, fix } = blockedBy(kernelAnswers(), distribution)
  return [fails(ID, `could not create a user namespace (${lastLine(stderr) || `exit ${code}`})`, why, fix)]
}

/** Kernel settings that can block user namespaces; undefined if the kernel has no such setting. */
export interface Switches {
  readonly apparmor: string | undefined
  readonly clone: string | undefined
  readonly most: string | undefined
  readonly container: boolean
}

function kernelAnswers(): Switches {
  const read = (path: string): string | undefined => {
    try {
      return readKernelFile(path).trim()
    } catch {
      return undefined
    }
  }
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
    return {
      why: 'user.max_user_namespaces is 0',
      fix: lasting('user.max_user_namespaces=15000'),
    }
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
