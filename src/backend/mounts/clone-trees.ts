/**
 * A hidden mode of pen that hands out detached mounts. It runs in a mount namespace that its caller made, where it may
 * clone mounts. The caller may not, and has them mounted in a sandbox.
 */
import { closeSync, fstatSync, readFileSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { sendDescriptors } from '../../base/kernel/pass-descriptors.ts'
import { openPinned } from '../process/pinned.ts'
import { cloneTree, NOSUID_NODEV, READ_ONLY, setAttributes } from './mount-calls.ts'

export const CLONE_MODE = '__clone'

/** A tree of the host. */
export interface TreeSource {
  readonly from: string
  readonly mode: 'ro' | 'rw'
}

/** Clones by a descriptor that was compared with its path, so the path cannot be swapped in between. */
export function detachedTree({ from, mode }: TreeSource): number {
  const pinned = openPinned(from)
  try {
    const tree = cloneTree(pinned)
    setAttributes(tree, mode === 'ro' ? READ_ONLY : NOSUID_NODEV, { below: true })
    return tree
  } finally {
    closeSync(pinned)
  }
}

const SOCKET_FD = 3

export async function cloneTrees(): Promise<ExitCode> {
  if (!isSocket(SOCKET_FD))
    throw new PenError('USAGE', { what: `${CLONE_MODE} is not a verb: pen starts it by itself` })
  const sources = JSON.parse(readFileSync(0, 'utf8')) as readonly TreeSource[]
  sendDescriptors(SOCKET_FD, { text: 'trees', descriptors: sources.map(detachedTree) })
  return EXIT.ok
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false
  }
}
