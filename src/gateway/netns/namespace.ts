/**
 * Where a door is opened: in a namespace made for it, or in that of a container which exists already and runs nothing
 * yet. How it is sockets does not depend on which (see door-inside.ts).
 */
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { close, openPath } from '../../base/kernel/descriptor.ts'
import { hasCapabilities } from '../../base/kernel/host-root.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { missingTool } from '../../base/missing-tool.ts'
import { bringUpLoopback } from './loopback.ts'

export type DoorLocation =
  /** A namespace of its own, for a sandbox that is started in it. */
  | { readonly kind: 'new' }
  /** The namespace of a process that already runs, such as a container that was created but not started. */
  | { readonly kind: 'of-process'; readonly pid: number; readonly userNamespace: boolean }
  /** One that pen may not enter itself, by its descriptor: a helper with root does. */
  | { readonly kind: 'by-helper'; readonly network: number; readonly helper: DoorRootHelper }

/** pen as root, where this one is not. */
export interface DoorRootHelper {
  run(
    argv: readonly string[],
    options: { readonly descriptors: readonly number[]; readonly timeoutMs: number },
  ): Promise<{ readonly code: number; readonly stderr: string }>
  listRefused(socket: number): Promise<unknown>
}

export interface NamespaceEntry {
  /** Put before a command, these words start it in the location. */
  readonly words: readonly string[]
  readonly userNamespace: UserNamespace
}

/**
 * `own-id`: our id is its uid 0 and it has no other. `many-ids`: we have to become its uid 0, else the program that is started
 * would have no power there.
 */
export type UserNamespace = 'none' | 'own-id' | 'many-ids'

const BECOME: Readonly<Record<Exclude<UserNamespace, 'none'>, readonly string[]>> = {
  // Becoming another uid begins with giving up groups, which the kernel refuses here.
  'own-id': ['--preserve-credentials'],
  'many-ids': ['--setuid=0', '--setgid=0'],
}

/** Where the helper finds the namespace: behind the channel of the door itself. */
const NETWORK = 4

const CAP_NET_ADMIN = 12
const CAP_SYS_ADMIN = 21

/** The way in, for the one process that furnishes the location. */
export function entryFor(location: DoorLocation): NamespaceEntry {
  switch (location.kind) {
    case 'new': {
      // With the powers of the host's root the namespace belongs to the host. Without, it belongs to a user namespace
      // around the sandbox's own. In neither case is the sandbox's root its owner.
      const userNamespace = hasCapabilities(CAP_NET_ADMIN, CAP_SYS_ADMIN) ? 'none' : 'own-id'
      const user = userNamespace === 'none' ? [] : ['--user', '--map-root-user']
      return { words: [tool('unshare'), ...user, '--net', '--'], userNamespace }
    }
    case 'of-process': {
      const userNamespace = location.userNamespace ? kindOf(location.pid) : 'none'
      const user = userNamespace === 'none' ? [] : ['--user', ...BECOME[userNamespace]]
      return {
        words: [tool('nsenter'), '--target', String(location.pid), ...user, '--net', '--'],
        userNamespace,
      }
    }
    case 'by-helper':
      return { words: [tool('nsenter'), `--net=/proc/self/fd/${NETWORK}`, '--'], userNamespace: 'none' }
  }
}

/** The way in later, by the descriptors of the namespaces: they last as long as this process holds them. */
export function entryByDescriptor(
  network: number,
  user: number,
  userNamespace: UserNamespace,
): NamespaceEntry {
  const held = (fd: number): string => `/proc/${process.pid}/fd/${fd}`
  const userWords = userNamespace === 'none' ? [] : [`--user=${held(user)}`, ...BECOME[userNamespace]]
  return { words: [tool('nsenter'), ...userWords, `--net=${held(network)}`, '--'], userNamespace }
}

function kindOf(pid: number): UserNamespace {
  const groups = readOfProcess(pid, 'setgroups')
  if (groups === undefined)
    throw new PenError('BACKEND', {
      what: 'the sandbox ended before its network was ready',
      hint: 'try again; pen logs --all tells what ended it',
    })
  return groups.trim() === 'deny' ? 'own-id' : 'many-ids'
}

const CLONE_NEWNET = 0x40000000

/**
 * Runs `start` with this thread inside the namespace, and comes back. Processes that it starts stay there, with whatever
 * identity they are given. Only for the host's root, and for nothing but starting a process: a thread that came into
 * being meanwhile would stay there too.
 */
export function inNamespace<T>(network: number, start: () => T): T {
  return awayFromHome(
    () => succeeded('enter the network namespace', tryCall('setns', network, CLONE_NEWNET)),
    start,
  )
}

/** The same in the namespace of another process. */
export function inNamespaceOf<T>(pid: number, start: () => T): T {
  const network = openPath(`/proc/${pid}/ns/net`)
  try {
    return inNamespace(network, start)
  } finally {
    close(network)
  }
}

/** Some runtimes leave it down in a namespace that has nothing else: then not even the sandbox itself reaches its servers. */
export const bringUpLoopbackOf = (pid: number): void => inNamespaceOf(pid, bringUpLoopback)

/** The same in a namespace that did not exist before. It lasts as long as something holds it. */
export function inNewNamespace<T>(start: () => T): T {
  return awayFromHome(() => succeeded('make a network namespace', tryCall('unshare', CLONE_NEWNET)), start)
}

function awayFromHome<T>(leave: () => void, start: () => T): T {
  const home = openPath('/proc/thread-self/ns/net')
  try {
    leave()
    try {
      return start()
    } finally {
      // Should this fail, every dial of this process leads back to the door: closed, and the error ends it.
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
