/** Moves this thread into another mount namespace. Other threads of the runtime keep their namespace, root and directory. */
import { succeeded, tryCall } from './system-call.ts'

const CLONE_FS = 0x200
const CLONE_NEWNS = 0x20000
const HERE = Buffer.from('.\0')

/** `root` becomes the root and current directory: paths do not start at the namespace's own root, which may be hostile. */
export function enterMounts(namespace: number, root: number): void {
  succeeded('have a root directory of its own', tryCall('unshare', CLONE_FS))
  succeeded('enter the mounts', tryCall('setns', namespace, CLONE_NEWNS))
  succeeded('enter the root directory', tryCall('fchdir', root))
  succeeded('change the root directory', tryCall('chroot', HERE))
}
