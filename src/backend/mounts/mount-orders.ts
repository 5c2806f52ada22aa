/**
 * Orders for a sandbox's mounts, and how a process in its mount namespace carries each out. A place is covered,
 * protected or mounted only if it is still the same file. Inodes are compared, so a swapped path is refused.
 */
import { chownSync, closeSync, constants, openSync } from 'node:fs'
import { type Found, findBeneath } from '../../base/beneath/open-beneath.ts'
import { errnoOf } from '../../base/error.ts'
import { O_PATH } from '../../base/kernel/descriptor.ts'
import type { HoldRequest, HoldResult } from '../backend.ts'
import { coverAround, type ShownBelow } from './cover-around.ts'
import { type FileIdentity, isSameFile } from './file-identity.ts'
import type { ProgramAnswer, ProgramOrder } from './hide-programs.ts'
import {
  attach,
  bind,
  mountScratch,
  NOEXEC,
  NOSUID_NODEV,
  RDONLY,
  READ_ONLY,
  setAttributes,
} from './mount-calls.ts'

export type MountOrder = What & FileIdentity & { readonly path: string }

type What =
  | { readonly how: HoldRequest['how'] }
  /** Covers a directory, and keeps the grants below it visible. */
  | { readonly how: 'cover-around'; readonly shows: readonly ShownBelow[] }
  /** A mount of the directory on itself, so that it can be neither renamed nor replaced. */
  | { readonly how: 'pin' }
  /** Writable inside a read-only mount. */
  | { readonly how: 'open' }
  /** Makes the mount noexec, and with `below` every mount below it. */
  | { readonly how: 'noexec'; readonly below?: true }
  | { readonly how: 'exec' }
  /** Makes the mount nosuid and nodev. */
  | { readonly how: 'restrict'; readonly mode: 'ro' | 'rw' }
  /** Attaches a detached mount, by its index. */
  | { readonly how: 'place'; readonly tree: number }
  | { readonly how: 'chown'; readonly uid: number; readonly gid: number }

/** The word after `pen` that starts the mode which carries out orders: see mount-inside.ts. */
export const MOUNT_MODE = '__mount'

/** Written by pen itself, over a pipe that only pen has. */
export interface MountOrders {
  /** The path of an empty file without permissions in the sandbox. */
  readonly emptyFile: string
  readonly orders: readonly MountOrder[]
  /** The number of detached mounts that were passed. */
  readonly trees: number
  /** Carried out after `orders`. */
  readonly programs?: ProgramOrder
}

export interface MountAnswer {
  readonly results: readonly HoldResult[]
  readonly programs?: ProgramAnswer
}

/** The sandbox that orders apply to. */
export interface Sandbox {
  /** Its root directory. */
  readonly root: number
  /** The path of an empty file without permissions in the sandbox. */
  readonly emptyFile: string
  /** Detached mounts for `place`. */
  readonly trees: readonly number[]
}

export function carryOutOrder(order: MountOrder, sandbox: Sandbox): HoldResult {
  try {
    return (
      findBeneath(sandbox.root, order.path, found => {
        if (!isSameFile(order, found)) return 'changed'
        return act(order, found, sandbox)
      }) ?? 'changed'
    )
  } catch (error) {
    const errno = errnoOf(error)
    // It was removed between the check and the mount.
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
    case 'chown':
      chownSync(`/proc/self/fd/${found.fd}`, order.uid, order.gid)
  }
  return 'held'
}

function cover({ fd, kind }: Found, { root, emptyFile }: Sandbox): void {
  if (kind === 'directory') {
    mountScratch(fd, 'mode=000,size=4k,nr_inodes=2', READ_ONLY | NOEXEC)
    return
  }
  const empty = openSync(`/proc/self/fd/${root}${emptyFile}`, O_PATH | constants.O_NOFOLLOW)
  try {
    bind(empty, fd, READ_ONLY)
  } finally {
    closeSync(empty)
  }
}
