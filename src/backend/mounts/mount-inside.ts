/**
 * pen in its hidden mode, started by pen inside the mount namespace of a running sandbox: it covers, protects or furnishes
 * the places that it is told on stdin, says how that went, and ends. Its root directory is the host's, so that nothing of
 * the sandbox's files is run or read; the sandbox cannot see it, because it is outside its process namespace.
 */
import { chownSync, closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../../base/error.ts'
import type { HoldRequest, HoldResult } from '../backend.ts'
import { cString, SystemCallError, systemCall } from '../process/libc.ts'
import { type Found, findBeneath, O_PATH } from './beneath-root.ts'

/** The word after `pen`. By itself it can do nothing: the descriptor below must be there too. */
export const MOUNT_MODE = '__mount'
/** The sandbox's root directory. */
export const ROOT_FD = 5
/** Detached mounts, in the order in which they were handed over. */
const FIRST_TREE_FD = 6

export type MountOrder = What & {
  readonly path: string
  /** In decimal. The file that the host has there: nothing else is ever mounted on. */
  readonly dev: string
  readonly ino: string
}

/** For places that are pen's own, in a sandbox in which nothing runs yet. */
export const WHATEVER_IS_THERE = { dev: 'any', ino: 'any' } as const

type What =
  | { readonly how: HoldRequest['how'] }
  /** A mount of its own, as it is: a directory that can be neither renamed nor replaced. */
  | { readonly how: 'pin' }
  /** Writable, in a mount that is not. */
  | { readonly how: 'open' }
  /** Nothing of the mount that begins there can be executed. */
  | { readonly how: 'noexec' }
  /** The mount that begins there honours no setuid bit and no device. */
  | { readonly how: 'restrict'; readonly mode: 'ro' | 'rw' }
  /** Puts a detached mount there, by its number in the order of handing over. */
  | { readonly how: 'place'; readonly tree: number }
  | { readonly how: 'give'; readonly uid: number; readonly gid: number }

/** Written by pen itself, over a pipe that nobody else has. */
export interface MountOrders {
  /** An empty file that nobody may open, in the sandbox. */
  readonly nothing: string
  readonly orders: readonly MountOrder[]
}

const CALL = { mount: process.arch === 'arm64' ? 40 : 165, openTree: 428, moveMount: 429, setattr: 442 }
const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
const AT_EMPTY_PATH = 0x1000
const AT_RECURSIVE = 0x8000
const FROM_AND_TO_DESCRIPTORS = 0x04 | 0x40
const RDONLY = 1
const NOSUID_NODEV = 6
const RDONLY_NOSUID_NODEV = 7
const NOEXEC = 8
const ENOENT = 2

export function mountInside(): ExitCode {
  if (!isDirectory(ROOT_FD))
    throw new PenError('USAGE', { what: `${MOUNT_MODE} is not a verb: pen starts it by itself` })
  const { nothing, orders } = JSON.parse(readFileSync(0, 'utf8')) as MountOrders
  writeSync(1, JSON.stringify(orders.map(order => carryOut(order, nothing))))
  return EXIT.ok
}

function carryOut(order: MountOrder, nothing: string): HoldResult {
  try {
    return (
      findBeneath(ROOT_FD, order.path, found => {
        if (!isMeant(order, found)) return 'changed'
        return act(order, found, nothing)
      }) ?? 'changed'
    )
  } catch (error) {
    // Removed between the look and the mount.
    if (error instanceof SystemCallError && error.errno === ENOENT) return 'changed'
    if (error instanceof SystemCallError) return { failed: error.message }
    throw error
  }
}

const isMeant = ({ dev, ino }: MountOrder, found: Found): boolean =>
  found.kind !== 'link' &&
  (dev === WHATEVER_IS_THERE.dev || (String(found.dev) === dev && String(found.ino) === ino))

function act(order: MountOrder, found: Found, nothing: string): HoldResult {
  switch (order.how) {
    case 'cover':
      cover(found, nothing)
      break
    case 'protect':
      if (!found.mountPoint) bind(found.fd, found.fd, RDONLY_NOSUID_NODEV)
      break
    case 'pin':
      if (!found.mountPoint) bind(found.fd, found.fd, NOSUID_NODEV)
      break
    case 'open':
      bind(found.fd, found.fd, NOSUID_NODEV, RDONLY)
      break
    case 'noexec':
      setAttributes(found.fd, NOEXEC)
      break
    case 'restrict':
      if (!found.mountPoint) return 'changed'
      setAttributes(found.fd, order.mode === 'ro' ? RDONLY_NOSUID_NODEV : NOSUID_NODEV)
      break
    case 'place':
      attach(FIRST_TREE_FD + order.tree, found.fd)
      break
    case 'give':
      chownSync(`/proc/self/fd/${found.fd}`, order.uid, order.gid)
  }
  return 'held'
}

function cover({ fd, kind }: Found, empty: string): void {
  if (kind === 'directory') {
    const options = cString('mode=000,size=4k,nr_inodes=2')
    const target = cString(`/proc/self/fd/${fd}`)
    const flags = RDONLY_NOSUID_NODEV | NOEXEC
    systemCall('mount', CALL.mount, cString('pen'), target, cString('tmpfs'), flags, options)
    return
  }
  const nothing = openSync(`/proc/self/fd/${ROOT_FD}${empty}`, O_PATH | constants.O_NOFOLLOW)
  try {
    bind(nothing, fd, RDONLY_NOSUID_NODEV)
  } finally {
    closeSync(nothing)
  }
}

/**
 * With its attributes before it is attached, and from descriptor to descriptor: no name is looked up that could be swapped.
 * Mounts below come along as they are: what is covered there stays covered.
 */
function bind(from: number, to: number, attributes: number, without = 0): void {
  const flags = OPEN_TREE_CLONE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH
  const tree = systemCall('open_tree', CALL.openTree, from, cString(''), flags)
  try {
    setAttributes(tree, attributes, without)
    attach(tree, to)
  } finally {
    closeSync(tree)
  }
}

function attach(tree: number, to: number): void {
  const empty = cString('')
  systemCall('move_mount', CALL.moveMount, tree, empty, to, empty, FROM_AND_TO_DESCRIPTORS)
}

/** What the mount had stays, but for what it is to be without. */
function setAttributes(mount: number, set: number, without = 0): void {
  // struct mount_attr { attr_set, attr_clr, propagation, userns_fd }, each 64 bits.
  const attributes = new Uint8Array(new BigUint64Array([BigInt(set), BigInt(without), 0n, 0n]).buffer)
  systemCall('mount_setattr', CALL.setattr, mount, cString(''), AT_EMPTY_PATH, attributes, attributes.length)
}

function isDirectory(fd: number): boolean {
  try {
    return fstatSync(fd).isDirectory()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
