/**
 * How an ordinary user's pen reaches a container of root's Docker daemon. It uses the root helper, and descriptors of
 * the container's namespaces that the exec daemon sends before it accepts orders.
 */
import { closeSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { listenForDescriptors, receiveDescriptors } from '../../../base/kernel/pass-descriptors.ts'
import type { UndoStack } from '../../../base/undo.ts'
import type { DaemonListener } from '../../daemon-socket.ts'
import type { Container } from '../container.ts'
import type { PreparedContainer } from '../request-container.ts'
import type { RootHelperLink } from './link.ts'
import { type RootHelperOptions, startRootHelper } from './start.ts'

export interface HelperAccess extends ShownNamespaces {
  readonly helper: RootHelperLink
}

export class PendingAccess {
  readonly #options: Pick<RootHelperOptions, 'engine' | 'program' | 'runtimes' | 'cacheDir'>
  #helper: Promise<RootHelperLink> | undefined
  #shown: (() => Promise<ShownNamespaces>) | undefined

  constructor(options: Pick<RootHelperOptions, 'engine' | 'program' | 'runtimes' | 'cacheDir'>) {
    this.#options = options
  }

  /** Starts the root helper, just before the container is requested. */
  begin(prepared: PreparedContainer): void {
    this.#shown = awaitNamespaces(prepared.inside.shownSocket, prepared.daemon, prepared.undo)
    this.#helper = startRootHelper({ ...this.#options, ...prepared })
    this.#helper.catch(() => undefined)
  }

  /** Undefined when `begin` was not called. pen may then enter the container itself. */
  async to(container: Container): Promise<HelperAccess | undefined> {
    if (this.#helper === undefined || this.#shown === undefined) return undefined
    const helper = await container.whileAlive(this.#helper)
    container.killer = process => helper.kill(process)
    return { helper, ...(await container.whileAlive(this.#shown())) }
  }
}

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
