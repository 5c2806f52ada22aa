/**
 * Orders for a sandbox's mounts, and how each is carried out by whoever stands in its mount namespace: a place is covered,
 * protected or furnished, but only if it is still the very file that was meant. Nothing is taken for its name.
 */
import { chownSync, closeSync, constants, openSync } from 'node:fs'
import { type Found, findBeneath } from '../../base/beneath/open-beneath.ts'
import { errnoOf } from '../../base/error.ts'
import { O_PATH } from '../../base/kernel/file.ts'
import type { HoldRequest, HoldResult } from '../backend.ts'
import { coverAround, type ShownBelow } from './cover-around.ts'
import { isMeant, type Meant } from './meant.ts'
import { attach, bind, mountScratch, NOEXEC, NOSUID_NODEV, RDONLY, setAttributes } from './mount-calls.ts'

export type MountOrder = What & Meant & { readonly path: string }

type What =
  | { readonly how: HoldRequest['how'] }
  /** Covers a directory, and leaves what is granted below it in sight. */
  | { readonly how: 'cover-around'; readonly shows: readonly ShownBelow[] }
  /** A mount of its own, as it is: a directory that can be neither renamed nor replaced. */
  | { readonly how: 'pin' }
  /** Writable, in a mount that is not. */
  | { readonly how: 'open' }
  /** Nothing of the mount that begins there can be executed; nor of any below. */
  | { readonly how: 'noexec'; readonly below?: true }
  | { readonly how: 'exec' }
  /** The mount that begins there honours no setuid bit and no device. */
  | { readonly how: 'restrict'; readonly mode: 'ro' | 'rw' }
  /** Puts a detached mount there, by its number in the order of handing over. */
  | { readonly how: 'place'; readonly tree: number }
  | { readonly how: 'give'; readonly uid: number; readonly gid: number }

/** What orders are carried out upon. */
export interface Sandbox {
  /** Its root directory. */
  readonly root: number
  /** An empty file that nobody may open, by its path in the sandbox. */
  readonly nothing: string
  /** Detached mounts, for orders that put one somewhere. */
  readonly trees: readonly number[]
}

const READ_ONLY = RDONLY | NOSUID_NODEV

export function carryOutOrder(order: MountOrder, sandbox: Sandbox): HoldResult {
  try {
    return (
      findBeneath(sandbox.root, order.path, found => {
        if (!isMeant(order, found)) return 'changed'
        return act(order, found, sandbox)
      }) ?? 'changed'
    )
  } catch (error) {
    const errno = errnoOf(error)
    // Removed between the look and the mount.
    if (errno === 'ENOENT') return 'changed'
    if (errno === undefined) throw error
    return { failed: error instanceof Error ? error.message : errno }
  }
}

function act(order: MountOrder, found: Found, sandbox: Sandbox): HoldResult {
  switch (order.how) {
    case 'cover':
      cover(found, sandbox)
      break
    case 'cover-around':
      return coverAround(order.path, order.shows, found, sandbox.root)
    case 'protect':
      if (!found.mountPoint) bind(found.fd, found.fd, READ_ONLY)
      break
    case 'pin':
      if (!found.mountPoint) bind(found.fd, found.fd, NOSUID_NODEV)
      break
    case 'open':
      bind(found.fd, found.fd, NOSUID_NODEV, RDONLY)
      break
    case 'noexec':
      setAttributes(found.fd, NOEXEC, { below: order.below === true })
      break
    case 'exec':
      setAttributes(found.fd, 0, { without: NOEXEC })
      break
    case 'restrict':
      if (!found.mountPoint) return 'changed'
      setAttributes(found.fd, order.mode === 'ro' ? READ_ONLY : NOSUID_NODEV)
      break
    case 'place':
      attach(sandbox.trees[order.tree] ?? -1, found.fd)
      break
    case 'give':
      chownSync(`/proc/self/fd/${found.fd}`, order.uid, order.gid)
  }
  return 'held'
}

function cover({ fd, kind }: Found, { root, nothing: empty }: Sandbox): void {
  if (kind === 'directory') {
    mountScratch(fd, 'mode=000,size=4k,nr_inodes=2', READ_ONLY | NOEXEC)
    return
  }
  const nothing = openSync(`/proc/self/fd/${root}${empty}`, O_PATH | constants.O_NOFOLLOW)
  try {
    bind(nothing, fd, READ_ONLY)
  } finally {
    closeSync(nothing)
  }
}
