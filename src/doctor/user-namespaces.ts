/** User namespaces, by starting one. Who forbids them is only asked when that did not work. */
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
  if (code === 0) return [ok(ID, 'a user namespace with a network namespace in it was started')]
  const { why, fix } = blockedBy(kernelAnswers(), distribution)
  return [fails(ID, `no user namespace could be started (${lastLine(stderr) || `code ${code}`})`, why, fix)]
}

/** What the kernel says of the usual switches; undefined where it has no such switch. */
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
      why: `kernel.unprivileged_userns_clone is 0: ${name} keeps them from ordinary users`,
      fix: lasting('kernel.unprivileged_userns_clone=1'),
    }
  if (apparmor === '1')
    return {
      why: `AppArmor keeps them from programs without a profile, as ${id === 'ubuntu' ? 'Ubuntu does since 23.10' : `on ${name}`}`,
      fix: lasting('kernel.apparmor_restrict_unprivileged_userns=0'),
    }
  if (container)
    return {
      why: 'pen runs in a container whose engine forbids them',
      fix: 'start that container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run pen outside of it',
    }
  return {
    why: 'none of the usual switches forbids them: the kernel has none, or a security module is in the way',
    fix: 'look at the log of the kernel (dmesg) in this moment, or use a kernel with CONFIG_USER_NS',
  }
}

/** Now, and at every start of the machine. */
const lasting = (setting: string): string =>
  `echo ${setting} | sudo tee /etc/sysctl.d/60-pen.conf && sudo sysctl --system`
