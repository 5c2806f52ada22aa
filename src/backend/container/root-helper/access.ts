/**
 * How an ordinary user's pen reaches a container of root's Docker daemon. It uses the root helper, and descriptors of
 * the container's namespaces that the exec daemon sends before it accepts orders.
 */
import { closeSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { listenForDescriptors, receiveDescriptors } from '../../../base/kernel/pass-descriptors.ts'
import type { UndoStack } from '../../../base/undo.ts'
import type { MadeNamespace } from '../../backend.ts'
import type { DaemonListener } from '../../daemon-socket.ts'
import type { Container } from '../container.ts'
import type { RootHelperLink } from './link.ts'
import { type RootHelperOptions, startRootHelper } from './start.ts'

export interface HelperAccess extends ShownNamespaces {
  readonly helper: RootHelperLink
}

interface AccessOptions extends RootHelperOptions {
  readonly daemon: DaemonListener
}

/** Starts the root helper, just before the container is requested. The returned function waits for it. */
export function beginAccess(options: AccessOptions): (container: Container) => Promise<HelperAccess> {
  const shown = awaitNamespaces(options.inside.shownSocket, options.daemon, options.undo)
  const starting = startRootHelper(options)
  starting.catch(() => undefined)
  return async container => {
    const helper = await container.whileAlive(starting)
    container.killer = process => helper.kill(process)
    return { helper, ...(await container.whileAlive(shown())) }
  }
}

/** The container's network namespace, as pen enters it. */
export const namespaceOf = (
  { init }: Container,
  reached: HelperAccess | undefined,
  { userNamespace }: { readonly userNamespace: boolean },
): MadeNamespace =>
  reached === undefined
    ? { kind: 'of-process', pid: init, userNamespace }
    : { kind: 'by-helper', network: reached.network, helper: reached.helper }

/** Descriptors. The code that mounts closes those of mounts and root. */
interface ShownNamespaces {
  readonly mounts: number
  readonly network: number
  readonly root: number
}

/**
 * `path` is on the host. The returned function waits for the exec daemon, which sends its namespaces before it
 * connects. Nothing of the image has run then. See guest/show-namespaces.ts.
 */
function awaitNamespaces(
  path: string,
  daemon: DaemonListener,
  undo: UndoStack,
): () => Promise<ShownNamespaces> {
  const listener = listenForDescriptors(path)
  undo.push('the socket for namespaces', () => listener.close())
  return async () => {
    await daemon.connected
    const descriptorSocket = listener.accept()
    listener.close()
    const shown =
      descriptorSocket === undefined ? undefined : receiveDescriptors(descriptorSocket)?.descriptors
    if (descriptorSocket !== undefined) closeSync(descriptorSocket)
    const [mounts, network, root] = shown ?? []
    if (mounts === undefined || network === undefined || root === undefined)
      throw new PenError('INTERNAL', { what: 'the exec daemon did not show its namespaces' })
    undo.push('the network namespace', () => closeSync(network))
    return { mounts, network, root }
  }
}
