/** This thread in another mount namespace. The runtime's other threads stay where they are, with their root and their directory. */
import { succeeded, tryCall } from './system-call.ts'

const CLONE_FS = 0x200
const CLONE_NEWNS = 0x20000
const HERE = Buffer.from('.\0')

/** `root` becomes its root directory, and where it is: no path leads through what the namespace has at its own. */
export function enterMounts(namespace: number, root: number): void {
  succeeded('have a root directory of its own', tryCall('unshare', CLONE_FS))
  succeeded('enter the mounts', tryCall('setns', namespace, CLONE_NEWNS))
  succeeded('enter the root directory', tryCall('fchdir', root))
  succeeded('change the root directory', tryCall('chroot', HERE))
}
