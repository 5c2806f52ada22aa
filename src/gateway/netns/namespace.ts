/** Ways into the network namespace of a door: a new one, or that of a container that exists but runs nothing yet. */
import { PenError } from '../../base/error.ts'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { close, openPath } from '../../base/kernel/descriptor.ts'
import { hasCapabilities } from '../../base/kernel/host-root.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { bringUpLoopback } from './loopback.ts'

export type DoorLocation =
  /** A new namespace, in which the sandbox is started later. */
  | { readonly kind: 'new' }
  /** The namespace of a running process, such as the init of a container that is created but not started. */
  | { readonly kind: 'of-process'; readonly pid: number; readonly userNamespace: boolean }
  /** A namespace that only the root helper may enter, by its descriptor. */
  | { readonly kind: 'by-helper'; readonly network: number; readonly helper: DoorRootHelper }

/** The part of the root helper that the door needs. */
export interface DoorRootHelper {
  run(
    argv: readonly string[],
    options: { readonly descriptors: readonly number[]; readonly timeoutMs: number },
  ): Promise<{ readonly code: number; readonly stderr: string }>
  listRefused(socket: number): Promise<unknown>
}

export interface NamespaceEntry {
  /** Put before a command, it starts the command in the namespace. */
  readonly prefix: readonly string[]
  readonly userNamespace: UserNamespace
}

/**
 * `own-id`: the user namespace maps only our id, to uid 0. `many-ids`: it maps many ids, and a program must become its
 * uid 0 to have capabilities there.
 */
export type UserNamespace = 'none' | 'own-id' | 'many-ids'

const BECOME: Readonly<Record<Exclude<UserNamespace, 'none'>, readonly string[]>> = {
  // --setuid would drop supplementary groups first, and the kernel refuses that here.
  'own-id': ['--preserve-credentials'],
  'many-ids': ['--setuid=0', '--setgid=0'],
}

/** The descriptor of the namespace in the root helper. The channel of the door is 3. */
const NETWORK = 4

const CAP_NET_ADMIN = 12
const CAP_SYS_ADMIN = 21

/** The entry for the process that opens the door. */
export function entryFor(location: DoorLocation): NamespaceEntry {
  switch (location.kind) {
    case 'new': {
      // With root, the host owns the namespace. Without, a user namespace around the sandbox's own one owns it. The root
      // of the sandbox never owns it.
      const userNamespace = hasCapabilities(CAP_NET_ADMIN, CAP_SYS_ADMIN) ? 'none' : 'own-id'
      const user = userNamespace === 'none' ? [] : ['--user', '--map-root-user']
      return { prefix: [tool('unshare'), ...user, '--net', '--'], userNamespace }
    }
    case 'of-process': {
      const userNamespace = location.userNamespace ? kindOf(location.pid) : 'none'
      const user = userNamespace === 'none' ? [] : ['--user', ...BECOME[userNamespace]]
      const prefix = [tool('nsenter'), '--target', String(location.pid), ...user, '--net', '--']
      return { prefix, userNamespace }
    }
    case 'by-helper':
      return { prefix: [tool('nsenter'), `--net=/proc/self/fd/${NETWORK}`, '--'], userNamespace: 'none' }
  }
}

/** The prefix of a later entry, by the descriptors of the namespaces. They last as long as this process holds them. */
export function entryByDescriptor(network: number, user: number, userNamespace: UserNamespace): string[] {
  const pathOf = (fd: number): string => `/proc/${process.pid}/fd/${fd}`
  const userFlags = userNamespace === 'none' ? [] : [`--user=${pathOf(user)}`, ...BECOME[userNamespace]]
  return [tool('nsenter'), ...userFlags, `--net=${pathOf(network)}`, '--']
}

function kindOf(pid: number): UserNamespace {
  const groups = readOfProcess(pid, 'setgroups')
  if (groups === undefined)
    throw new PenError('BACKEND', {
      what: 'the sandbox ended before its network was ready',
      hint: 'run it again; `pen logs --all` shows what ended it',
    })
  return groups.trim() === 'deny' ? 'own-id' : 'many-ids'
}

const CLONE_NEWNET = 0x40000000

/**
 * Runs `work` with this thread inside the namespace, and returns to the old one. Needs root. Sockets and processes that
 * `work` creates stay in the namespace. So would a thread that starts meanwhile, so `work` must be short and synchronous.
 */
export function inNamespace<T>(network: number, work: () => T): T {
  return inOtherNamespace(
    () => succeeded('enter the network namespace', tryCall('setns', network, CLONE_NEWNET)),
    work,
  )
}

/** The same in the namespace of another process. */
export function inNamespaceOf<T>(pid: number, work: () => T): T {
  const network = openPath(`/proc/${pid}/ns/net`)
  try {
    return inNamespace(network, work)
  } finally {
    close(network)
  }
}

/** Some container runtimes leave `lo` down in an empty namespace. Then a sandbox cannot reach its own servers. */
export const bringUpLoopbackOf = (pid: number): void => inNamespaceOf(pid, bringUpLoopback)

/** The same in a new namespace. It lasts as long as a socket, a process or a descriptor holds it. */
export function inNewNamespace<T>(work: () => T): T {
  return inOtherNamespace(() => succeeded('make a network namespace', tryCall('unshare', CLONE_NEWNET)), work)
}

function inOtherNamespace<T>(enter: () => void, work: () => T): T {
  const home = openPath('/proc/thread-self/ns/net')
  try {
    enter()
    try {
      return work()
    } finally {
      // If this failed, pen would dial from inside the namespace and reach only the door. The error ends pen.
      succeeded('leave the network namespace', tryCall('setns', home, CLONE_NEWNET))
    }
  } finally {
    close(home)
  }
}

function tool(name: 'unshare' | 'nsenter'): string {
  const path = findTool(name)
  if (path === undefined) throw missingTool(name, 'install util-linux')
  return path
}
