import { closeSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { listenForDescriptors } from '../../base/kernel/descriptor-socket.ts'
import { receiveDescriptors } from '../../base/kernel/pass-descriptors.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { DaemonListener } from '../daemon-socket.ts'

/** Descriptors. The code that mounts closes those of mounts and root. */
export interface ShownNamespaces {
  readonly mounts: number
  readonly network: number
  readonly root: number
}

/**
 * `path` is on the host. The returned function waits for the exec daemon, which sends its namespaces before it
 * connects. Nothing of the image has run then. See guest/show-namespaces.ts.
 */
export function awaitNamespaces(
  path: string,
  daemon: DaemonListener,
  undo: UndoStack,
): () => Promise<ShownNamespaces> {
  const listener = listenForDescriptors(path)
  undo.push('the socket for namespaces', () => listener.close())
  return async () => {
    await daemon.connected
    const over = listener.accept()
    listener.close()
    const shown = over === undefined ? undefined : receiveDescriptors(over)?.descriptors
    if (over !== undefined) closeSync(over)
    const [mounts, network, root] = shown ?? []
    if (mounts === undefined || network === undefined || root === undefined)
      throw new PenError('INTERNAL', { what: 'the exec daemon did not show its namespaces' })
    undo.push('the network namespace', () => closeSync(network))
    return { mounts, network, root }
  }
}
