/**
 * For a pen that runs as root. The sandbox's processes get an ordinary uid of the host, so they have no access to what
 * root owns: `/proc/sys`, device nodes, sockets. A tree that root owns is shown through an idmapped mount. Root's files
 * appear as the sandbox's, and new files belong to root on the disk.
 *
 * The mounts are in a mount namespace of this run. No other process sees them, and they end with the last process.
 */
import { closeSync, constants, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { O_PATH } from '../../base/kernel/descriptor.ts'
import { joinMounts } from '../../base/kernel/process.ts'
import { cString, systemCall } from '../../base/kernel/system-call.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { PlannedLayer } from '../../plan/plan.ts'
import { type Identity, IdMapping } from '../mounts/id-mapping.ts'
import { attach, cloneTree, mountOverlay, mountScratch, NOSUID_NODEV } from '../mounts/mount-calls.ts'
import { LAYER_OPTIONS } from './layer-mount.ts'

const { O_NOFOLLOW } = constants
const CLONE_NEWNS = 0x20000
const MS_REC_PRIVATE = 0x4000 | 0x40000

const ROOT: Identity = { uid: 0, gid: 0 }

/** A directory that every uid can enter and that has no system files. It is covered only inside the namespace. */
const stageDirectory = (): string => ['/mnt', '/media', '/srv'].find(path => existsSync(path)) ?? '/tmp'

interface Staged {
  readonly tree: number
  readonly at: string
  readonly kind: 'file' | 'directory'
}

/** An overlay of two staged trees. */
interface StagedLayer {
  readonly at: string
  readonly lower: string
  readonly layer: string
}

export class Staging {
  readonly #home: number
  readonly #cwd = process.cwd()
  readonly #mapping: IdMapping
  readonly #stage = stageDirectory()
  readonly #staged: Staged[] = []
  #layer: StagedLayer | undefined
  #left: boolean = false

  /** Enters a new mount namespace. Every process that is spawned until `leave()` is in it. */
  constructor(identity: Identity, undo: UndoStack, layer?: PlannedLayer, owner = ROOT) {
    // overlayfs works in a layer as root, so root needs an id there.
    this.#mapping = new IdMapping(owner, identity, layer?.kind === 'overlay' ? 'swapped' : 'unmapped')
    undo.push('the staging mounts', () => this.leave())
    this.#home = openSync('/proc/thread-self/ns/mnt', 'r')
    systemCall('unshare', CLONE_NEWNS)
    systemCall('mount', cString('none'), cString('/'), null, MS_REC_PRIVATE, null)
  }

  /**
   * Returns the path at which the sandbox's uid will reach `source`, a path or a descriptor. `map` shows the files of
   * root, or of another owner, as owned by that uid.
   */
  stage(source: string | number, kind: 'file' | 'directory', map: boolean): string {
    const tree =
      typeof source === 'number' ? cloneTree(source) : withOpened(source, O_NOFOLLOW, fd => cloneTree(fd))
    const at = `${this.#stage}/${this.#staged.length}`
    this.#staged.push({ tree, at, kind })
    if (map) this.#mapping.apply(tree, String(source))
    return at
  }

  /** The same for the merged tree of a review layer. `map` is as for the project. */
  stageLayer(layer: string, workspace: string, map: boolean): string {
    const staged = [workspace, layer].map(path => this.stage(path, 'directory', map))
    this.#layer = { at: `${this.#stage}/merged`, lower: String(staged[0]), layer: String(staged[1]) }
    return this.#layer.at
  }

  /** Mounts everything that was staged. The stage directory is covered only now, because a project may be below it. */
  show(): void {
    withOpened(this.#stage, 0, fd => mountScratch(fd, 'mode=755,size=64k', NOSUID_NODEV))
    for (const { tree, at, kind } of this.#staged) {
      if (kind === 'directory') mkdirSync(at)
      else writeFileSync(at, '')
      withOpened(at, O_NOFOLLOW, fd => attach(tree, fd))
    }
    if (this.#layer === undefined) return
    const { at, lower, layer } = this.#layer
    mkdirSync(at)
    mountOverlay(at, `${LAYER_OPTIONS},lowerdir=${lower},upperdir=${layer}/upper,workdir=${layer}/work`)
  }

  /** Returns to the host's namespace. The sandbox's processes stay in theirs. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    for (const { tree } of this.#staged) closeSync(tree)
    joinMounts(this.#home)
    closeSync(this.#home)
    process.chdir(this.#cwd)
    this.#mapping.end()
  }
}

function withOpened<T>(path: string, flags: number, act: (fd: number) => T): T {
  const fd = openSync(path, O_PATH | flags)
  try {
    return act(fd)
  } finally {
    closeSync(fd)
  }
}
