/**
 * Root is given up before anything of the sandbox runs. The sandbox's processes get an ordinary uid of the host, so
 * that nothing owned by root (`/proc/sys`, device nodes, sockets) answers to them; a tree that root owns is shown to
 * them through an id-mapped mount, where root's files are theirs and what they make is root's on the disk.
 *
 * The mounts live in a mount namespace of this run: no other process sees them, and they end with the last process.
 */
import { closeSync, existsSync, mkdirSync, openSync, readlinkSync, writeFileSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { readKernelFile } from '../../base/kernel-file.ts'
import type { UndoStack } from '../../base/undo.ts'
import { cString, pipe, systemCall } from './libc.ts'

const CLONE_NEWNS = 0x20000
const CLONE_FS = 0x200
const MS_REC_PRIVATE = 0x4000 | 0x40000
const AT_FDCWD = -100
const AT_EMPTY_PATH = 0x1000
const AT_RECURSIVE = 0x8000
const AT_SYMLINK_NOFOLLOW = 0x100
const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
const MOVE_MOUNT_F_EMPTY_PATH = 4
const MOUNT_ATTR_IDMAP = 0x100000n

/** The numbers are the same on x86-64 and arm64 for the calls after 424. */
const CALL = {
  unshare: process.arch === 'arm64' ? 97 : 272,
  setns: process.arch === 'arm64' ? 268 : 308,
  mount: process.arch === 'arm64' ? 40 : 165,
  openTree: 428,
  moveMount: 429,
  mountSetattr: 442,
} as const

export interface Identity {
  readonly uid: number
  readonly gid: number
}

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
  readonly #mapping: Mapping
  readonly #stage = stageDirectory()
  readonly #staged: Staged[] = []
  #left: boolean = false

  /** Enters a mount namespace of this run's own. Everything spawned until `leave()` lives in it. */
  constructor(identity: Identity, undo: UndoStack) {
    this.#mapping = new Mapping(identity)
    undo.push('staging', () => this.leave())
    this.#home = openSync('/proc/thread-self/ns/mnt', 'r')
    systemCall('unshare', CALL.unshare, CLONE_NEWNS)
    systemCall('mount', CALL.mount, cString('none'), cString('/'), null, MS_REC_PRIVATE, null)
  }

  /** The name under which the sandbox's uid will reach a path or descriptor, with root's files mapped to it when `map` is set. */
  stage(source: string | number, kind: 'file' | 'directory', map: boolean): string {
    const tree = systemCall(
      'open_tree',
      CALL.openTree,
      typeof source === 'string' ? AT_FDCWD : source,
      cString(typeof source === 'string' ? source : ''),
      OPEN_TREE_CLONE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
    )
    const at = `${this.#stage}/${this.#staged.length}`
    this.#staged.push({ tree, at, kind })
    if (map) this.#map(tree, String(source))
    return at
  }

  /** Puts what was staged in place. Only now is the stage covered: a project may lie below it. */
  show(): void {
    systemCall(
      'mount',
      CALL.mount,
      cString('pen'),
      cString(this.#stage),
      cString('tmpfs'),
      6,
      cString('mode=755,size=64k'),
    )
    for (const { tree, at, kind } of this.#staged) {
      if (kind === 'directory') mkdirSync(at)
      else writeFileSync(at, '')
      systemCall(
        'move_mount',
        CALL.moveMount,
        tree,
        cString(''),
        AT_FDCWD,
        cString(at),
        MOVE_MOUNT_F_EMPTY_PATH,
      )
    }
  }

  #map(tree: number, path: string): void {
    // struct mount_attr { attr_set, attr_clr, propagation, userns_fd }, each 64 bits.
    const attributes = new BigUint64Array([MOUNT_ATTR_IDMAP, 0n, 0n, BigInt(this.#mapping.fd())])
    try {
      systemCall(
        'mount_setattr',
        CALL.mountSetattr,
        tree,
        cString(''),
        AT_EMPTY_PATH,
        new Uint8Array(attributes.buffer),
        32,
      )
    } catch (error) {
      throw new PenError('BACKEND', {
        what: `root cannot be mapped away on the file system of ${path}`,
        hint: 'run pen as an ordinary user, or give the project to one (chown), then root runs the sandbox as that user',
        cause: error,
      })
    }
  }

  /** Back to the host's view. The sandbox's processes stay behind. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    for (const { tree } of this.#staged) closeSync(tree)
    // A thread that the runtime began meanwhile shares our root and current directory, and the kernel lets nobody who
    // shares them change namespaces.
    systemCall('unshare', CALL.unshare, CLONE_FS)
    systemCall('setns', CALL.setns, this.#home, CLONE_NEWNS)
    closeSync(this.#home)
    process.chdir(this.#cwd)
    this.#mapping.end()
  }
}

/**
 * A user namespace in which 0 is the sandbox's uid, and every other id itself, so that a group or another owner on one
 * of root's files makes it no less root's. Only its mapping is used: nothing ever runs in it but a `cat` that waits for us.
 */
class Mapping {
  readonly #identity: Identity
  readonly #holder: Holder
  #fd: number | undefined

  constructor(identity: Identity) {
    this.#identity = identity
    this.#holder = held ?? startHolder()
    held = undefined
  }

  /** Its descriptor, waited for when it is first needed. */
  fd(): number {
    if (this.#fd !== undefined) return this.#fd
    const { uid, gid } = this.#identity
    this.#awaitNamespace()
    writeFileSync(`/proc/${this.#holder.pid}/uid_map`, mapOfRoot(uid))
    writeFileSync(`/proc/${this.#holder.pid}/gid_map`, mapOfRoot(gid))
    this.#fd = openSync(`/proc/${this.#holder.pid}/ns/user`, 'r')
    return this.#fd
  }

  #awaitNamespace(): void {
    const own = readlinkSync('/proc/self/ns/user')
    const deadline = performance.now() + 2000
    do {
      try {
        if (readlinkSync(`/proc/${this.#holder.pid}/ns/user`) !== own) return
      } catch {
        // Not started yet, or already gone.
      }
    } while (!hasEnded(this.#holder.pid) && performance.now() < deadline)
    throw new PenError('BACKEND', { what: 'a user namespace could not be made', hint: USERNS_HINT })
  }

  end(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
    this.#holder.kill()
  }
}

/** Asked of the kernel: the runtime would tell only after this turn of its loop. */
const hasEnded = (pid: number): boolean => / [ZX] /.test(readKernelFile(`/proc/${pid}/stat`))

interface Holder {
  readonly pid: number
  kill(): void
}

let held: Holder | undefined

/** Starts what the next `Staging` will need: a program takes a millisecond or two to be there. */
export function holdMapping(): void {
  held ??= startHolder()
}

/** It ends when its input does: also when pen is killed. */
function startHolder(): Holder {
  const unshare = findTool('unshare')
  const cat = findTool('cat')
  if (unshare === undefined || cat === undefined)
    throw new PenError('MISSING_TOOL', {
      what: 'unshare and cat are needed to run as root',
      hint: 'install util-linux and coreutils',
    })
  const [input, writer] = pipe()
  const child = Bun.spawn([unshare, '--user', cat], {
    stdio: [input, 'ignore', 'ignore'],
    env: {},
    cwd: '/',
  })
  closeSync(input)
  return {
    pid: child.pid,
    kill: () => {
      closeSync(writer)
      child.kill('SIGKILL')
    },
  }
}

const mapOfRoot = (id: number): string => `0 ${id} 1${id > 1 ? `\n1 1 ${id - 1}` : ''}\n`

export const USERNS_HINT =
  'user namespaces are blocked here: on Ubuntu 24.04 allow bwrap in AppArmor (sysctl kernel.apparmor_restrict_unprivileged_userns=0), in Docker run with --security-opt seccomp=unconfined, on hardened kernels set kernel.unprivileged_userns_clone=1'
