/**
 * Root is given up before anything of the sandbox runs. The sandbox's processes get an ordinary uid of the host, so
 * that nothing owned by root (`/proc/sys`, device nodes, sockets) answers to them; a tree that root owns is shown to
 * them through an id-mapped mount, where root's files are theirs and what they make is root's on the disk.
 *
 * The mounts live in a mount namespace of this run: no other process sees them, and they end with the last process.
 */
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { cString, systemCall } from '../../base/kernel/system-call.ts'
import type { UndoStack } from '../../base/undo.ts'
import { type Identity, IdMapping } from '../mounts/id-mapping.ts'

const CLONE_NEWNS = 0x20000
const CLONE_FS = 0x200
const MS_REC_PRIVATE = 0x4000 | 0x40000
const AT_FDCWD = -100
const AT_EMPTY_PATH = 0x1000
const AT_RECURSIVE = 0x8000
const AT_SYMLINK_NOFOLLOW = 0x100
const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
const MOVE_MOUNT_F_EMPTY_PATH = 4

const ROOT: Identity = { uid: 0, gid: 0 }

/** A directory that a bubblewrap of any uid can enter and that holds nothing of the system; covered only inside the namespace. */
const stageDirectory = (): string => ['/mnt', '/media', '/srv'].find(path => existsSync(path)) ?? '/tmp'

interface Staged {
  readonly tree: number
  readonly at: string
  readonly kind: 'file' | 'directory'
}

export class Staging {
  readonly #home: number
  readonly #cwd = process.cwd()
  readonly #mapping: IdMapping
  readonly #stage = stageDirectory()
  readonly #staged: Staged[] = []
  #left: boolean = false

  /** Enters a mount namespace of this run's own. Everything spawned until `leave()` lives in it. */
  constructor(identity: Identity, undo: UndoStack) {
    this.#mapping = new IdMapping(ROOT, identity)
    undo.push('the staging mounts', () => this.leave())
    this.#home = openSync('/proc/thread-self/ns/mnt', 'r')
    systemCall('unshare', CLONE_NEWNS)
    systemCall('mount', cString('none'), cString('/'), null, MS_REC_PRIVATE, null)
  }

  /** The name under which the sandbox's uid will reach a path or descriptor, with root's files mapped to it when `map` is set. */
  stage(source: string | number, kind: 'file' | 'directory', map: boolean): string {
    const tree = systemCall(
      'open_tree',
      typeof source === 'string' ? AT_FDCWD : source,
      cString(typeof source === 'string' ? source : ''),
      OPEN_TREE_CLONE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
    )
    const at = `${this.#stage}/${this.#staged.length}`
    this.#staged.push({ tree, at, kind })
    if (map) this.#mapping.apply(tree, String(source))
    return at
  }

  /** Puts what was staged in place. Only now is the stage covered: a project may lie below it. */
  show(): void {
    systemCall(
      'mount',
      cString('pen'),
      cString(this.#stage),
      cString('tmpfs'),
      6,
      cString('mode=755,size=64k'),
    )
    for (const { tree, at, kind } of this.#staged) {
      if (kind === 'directory') mkdirSync(at)
      else writeFileSync(at, '')
      systemCall('move_mount', tree, cString(''), AT_FDCWD, cString(at), MOVE_MOUNT_F_EMPTY_PATH)
    }
  }

  /** Back to the host's view. The sandbox's processes stay behind. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    for (const { tree } of this.#staged) closeSync(tree)
    // A thread that the runtime began meanwhile shares our root and current directory, and the kernel lets nobody who
    // shares them change namespaces.
    systemCall('unshare', CLONE_FS)
    systemCall('setns', this.#home, CLONE_NEWNS)
    closeSync(this.#home)
    process.chdir(this.#cwd)
    this.#mapping.end()
  }
}
