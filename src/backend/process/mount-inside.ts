/**
 * pen in its hidden mode, started by pen inside the mount namespace of a running sandbox: it covers or protects the
 * places that it is told on stdin, says how that went, and ends. Its root directory is the host's, so that nothing of
 * the sandbox's files is run or read; the sandbox cannot see it, because it is outside its process namespace.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../../base/error.ts'
import type { HoldRequest, HoldResult } from '../backend.ts'
import { type Found, findBeneath, O_PATH } from './beneath-root.ts'
import { cString, SystemCallError, systemCall } from './libc.ts'
import { NOTHING } from './nothing.ts'

/** The word after `pen`. By itself it can do nothing: the descriptor below must be there too. */
export const MOUNT_MODE = '__mount'
/** The sandbox's root directory. */
export const ROOT_FD = 5

export interface MountOrder {
  /** `noexec`: nothing of the mount that begins there can be executed. */
  readonly how: HoldRequest['how'] | 'noexec'
  readonly path: string
  /** In decimal. The file that the host has there: nothing else is ever mounted on. */
  readonly dev: string
  readonly ino: string
}

const CALL = { mount: process.arch === 'arm64' ? 40 : 165, openTree: 428, moveMount: 429, setattr: 442 }
const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
const AT_EMPTY_PATH = 0x1000
const FROM_AND_TO_DESCRIPTORS = 0x04 | 0x40
const RDONLY_NOSUID_NODEV = 7
const NOEXEC = 8
const ENOENT = 2

export function mountInside(): ExitCode {
  if (!isDirectory(ROOT_FD))
    throw new PenError('USAGE', { what: `${MOUNT_MODE} is not a verb: pen starts it by itself` })
  // Written by pen itself, over a pipe that nobody else has.
  const orders = JSON.parse(readFileSync(0, 'utf8')) as MountOrder[]
  writeSync(1, JSON.stringify(orders.map(carryOut)))
  return EXIT.ok
}

function carryOut(order: MountOrder): HoldResult {
  try {
    return (
      findBeneath(ROOT_FD, order.path, found => {
        if (String(found.dev) !== order.dev || String(found.ino) !== order.ino || found.kind === 'link')
          return 'changed'
        if (order.how === 'cover') cover(found)
        else if (order.how === 'noexec') setAttributes(found.fd, NOEXEC)
        else if (!found.mountPoint) bindReadOnly(found.fd, found.fd)
        return 'held'
      }) ?? 'changed'
    )
  } catch (error) {
    // Removed between the look and the mount.
    if (error instanceof SystemCallError && error.errno === ENOENT) return 'changed'
    if (error instanceof SystemCallError) return { failed: error.message }
    throw error
  }
}

function cover({ fd, kind }: Found): void {
  if (kind === 'directory') {
    const options = cString('mode=000,size=4k,nr_inodes=2')
    const target = cString(`/proc/self/fd/${fd}`)
    const flags = RDONLY_NOSUID_NODEV | NOEXEC
    systemCall('mount', CALL.mount, cString('pen'), target, cString('tmpfs'), flags, options)
    return
  }
  const nothing = openSync(`/proc/self/fd/${ROOT_FD}${NOTHING}`, O_PATH | constants.O_NOFOLLOW)
  try {
    bindReadOnly(nothing, fd)
  } finally {
    closeSync(nothing)
  }
}

/** Read-only before it is attached, and from descriptor to descriptor: no name is looked up that could be swapped. */
function bindReadOnly(from: number, to: number): void {
  const empty = cString('')
  const tree = systemCall('open_tree', CALL.openTree, from, empty, OPEN_TREE_CLONE_CLOEXEC | AT_EMPTY_PATH)
  try {
    setAttributes(tree, RDONLY_NOSUID_NODEV)
    systemCall('move_mount', CALL.moveMount, tree, empty, to, empty, FROM_AND_TO_DESCRIPTORS)
  } finally {
    closeSync(tree)
  }
}

/** Attributes are only ever added: what the mount had stays. */
function setAttributes(mount: number, set: number): void {
  // struct mount_attr { attr_set, attr_clr, propagation, userns_fd }, each 64 bits.
  const attributes = new Uint8Array(new BigUint64Array([BigInt(set), 0n, 0n, 0n]).buffer)
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
