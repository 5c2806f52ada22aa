/**
 * Sends the namespaces and the root directory of a container's exec daemon to a supervisor that may not inspect root's
 * processes. They are sent as descriptors before the first order. Nothing of the image has run by then.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { O_PATH } from '../base/kernel/descriptor.ts'
import { connectForDescriptors, sendDescriptors } from '../base/kernel/pass-descriptors.ts'

export function showNamespaces(path: string): void {
  const socket = connectForDescriptors(path)
  const descriptors = [
    openSync('/proc/self/ns/mnt', 'r'),
    openSync('/proc/self/ns/net', 'r'),
    openSync('/', O_PATH | constants.O_DIRECTORY),
  ]
  sendDescriptors(socket, { text: 'namespaces', descriptors })
  for (const fd of [socket, ...descriptors]) closeSync(fd)
}
