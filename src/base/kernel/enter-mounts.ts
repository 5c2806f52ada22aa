/** This thread in another mount namespace. The runtime's other threads stay where they are, with their root and their directory. */
import { ptr } from 'bun:ffi'
import { libc, succeeded } from './libc.ts'

const CLONE_FS = 0x200
const CLONE_NEWNS = 0x20000
const HERE = Buffer.from('.\0')

/** `root` becomes its root directory, and where it is: no path leads through what the namespace has at its own. */
export function enterMounts(namespace: number, root: number): void {
  succeeded('have a root directory of its own', libc().unshare(CLONE_FS))
  succeeded('enter the mounts', libc().setns(namespace, CLONE_NEWNS))
  succeeded('enter the root directory', libc().fchdir(root))
  succeeded('change the root directory', libc().chroot(ptr(HERE)))
}
