/**
 * How an ordinary user's pen reaches a container of root's Docker daemon. It uses the root helper, and descriptors of
 * the container's namespaces that the exec daemon sends before it accepts orders.
 */

import type { Container } from '../container.ts'
import type { PreparedContainer } from '../request-container.ts'
import { awaitNamespaces, type ShownNamespaces } from '../shown-namespaces.ts'
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
  begin(ready: PreparedContainer): void {
    this.#shown = awaitNamespaces(ready.inside.shownSocket, ready.daemon, ready.undo)
    this.#helper = startRootHelper({ ...this.#options, ...ready })
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
