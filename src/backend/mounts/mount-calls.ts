/** Mounts by descriptor, so no path is looked up that could be swapped. */
import { closeSync } from 'node:fs'
import { cString, systemCall } from '../../base/kernel/system-call.ts'

const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
const AT_EMPTY_PATH = 0x1000
const AT_RECURSIVE = 0x8000
const FROM_AND_TO_DESCRIPTORS = 0x04 | 0x40

/** The same numbers are flags of `mount` and attributes of a mount. */
export const RDONLY = 1
export const NOSUID_NODEV = 6
export const NOEXEC = 8
export const READ_ONLY = RDONLY | NOSUID_NODEV
/** An attribute of a mount: shows the owners of files through a user namespace. */
export const IDMAP = 0x100000

/** A detached mount of the directory with the mounts below it, so covered places stay covered. */
export const cloneTree = (from: number): number =>
  systemCall('open_tree', from, cString(''), OPEN_TREE_CLONE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH)

/** Sets the attributes before the mount is attached. */
export function bind(from: number, to: number, attributes: number, without = 0): void {
  const tree = cloneTree(from)
  try {
    setAttributes(tree, attributes, { without })
    attach(tree, to)
  } finally {
    closeSync(tree)
  }
}

export function attach(tree: number, to: number): void {
  const empty = cString('')
  systemCall('move_mount', tree, empty, to, empty, FROM_AND_TO_DESCRIPTORS)
}

interface AttributeOptions {
  /** Attributes to remove. */
  readonly without?: number
  /** Include every mount below. */
  readonly below?: boolean
  /** The user namespace for `IDMAP`. */
  readonly namespace?: number
}

export function setAttributes(mount: number, set: number, options: AttributeOptions = {}): void {
  const { without = 0, below = false, namespace = 0 } = options
  // struct mount_attr { attr_set, attr_clr, propagation, userns_fd }, each 64 bits.
  const words = new BigUint64Array([BigInt(set), BigInt(without), 0n, BigInt(namespace)])
  const attributes = new Uint8Array(words.buffer)
  const flags = below ? AT_EMPTY_PATH | AT_RECURSIVE : AT_EMPTY_PATH
  systemCall('mount_setattr', mount, cString(''), flags, attributes, attributes.length)
}

export function mountScratch(at: number, options: string, flags: number): void {
  const target = cString(`/proc/self/fd/${at}`)
  systemCall('mount', cString('pen'), target, cString('tmpfs'), flags, cString(options))
}

/** For pen's own paths, in a mount namespace that no other process sees. */
export function mountOverlay(at: string, options: string): void {
  systemCall('mount', cString('pen'), cString(at), cString('overlay'), NOSUID_NODEV, cString(options))
}
