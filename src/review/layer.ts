/**
 * The review layer of one sandbox, in pen's state: what it changed in the project, until the user accepts it. No sandbox sees this
 * directory except as the merged tree. Below `upper` everything is hostile.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { itself, LIST, openDirectory, withAccess } from '../base/beneath/beneath.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { type Lock, takeLock } from '../config/lock.ts'
import { REVIEW } from '../repository/own-repository.ts'

/** `overlay`: `upper` holds the changes. `copy`: `merged` is a copy of the whole project, where overlayfs cannot serve. */
export type LayerKind = 'overlay' | 'copy'

export interface Layer {
  readonly version: 1
  /** The project's canonical path. */
  readonly workspace: string
  readonly kind: LayerKind
  /** When it was made, in milliseconds since 1970. What has a later ctime on the host was changed by the user meanwhile. */
  readonly made: number
  /** The commit of the host's HEAD at that time. Null without a repository. */
  readonly base: string | null
}

/** The name of the sandbox's own git directory of this layer, below `git/` in its state. It does not sync while in review. */
export const REVIEW_REPOSITORY = REVIEW

export const layerPaths = (stateDir: string) => {
  const dir = `${stateDir}/review`
  return {
    dir,
    /** `layer.json`, written last: without it the layer is unfinished. */
    record: `${dir}/layer.json`,
    /** A symbolic link to the project, so that no path has to be escaped in mount options. */
    lower: `${dir}/lower`,
    upper: `${dir}/upper`,
    /** overlayfs's own. Each mount needs a new one. */
    work: `${dir}/work`,
    /** The mount point, empty on the host. With `copy`, the copy. */
    merged: `${dir}/merged`,
    /** The journal of a rollback. */
    rollback: `${dir}/rollback.json`,
    /** Beside the layer, which can be removed under it. */
    lock: `${stateDir}/review.lock`,
    /** Of accepts, and of other work on the layer by commands. Beside the layer for the same reason. */
    acceptLock: `${stateDir}/review-accept.lock`,
  } as const
}

/** Undefined where there is none, or an unfinished one. */
export function readLayer(stateDir: string): Layer | undefined {
  const { record } = layerPaths(stateDir)
  const bytes = readRegularFile(record, { maxBytes: 65_536 })
  if (bytes === undefined) return undefined
  const layer = parseRecord(bytes.toString('utf8'), record)
  if (layer.version === 1) return layer
  throw new PenError('STATE', {
    what: `the review layer is of another version of pen (${layer.version})`,
    at: record,
    hint: 'use that version for pen diff, pen accept or pen discard',
  })
}

export const noLayer = (): PenError =>
  new PenError('STATE', {
    what: 'this project has no review layer',
    hint: 'pen run --review -- COMMAND, or pen start --review',
  })

/** It is not synced. */
function parseRecord(text: string, record: string): Layer {
  try {
    return JSON.parse(text) as Layer
  } catch (cause) {
    throw new PenError('STATE', {
      what: 'the record of the review layer is damaged, as after a power failure',
      at: record,
      hint: `copy what you need from ${dirname(record)}, then: pen rm --discard`,
      cause,
    })
  }
}

/**
 * Held while the layer is mounted, and while pen accepts or removes it: the kernel does not refuse two mounts of one upper
 * directory. The watcher of a killed pen holds it until the sandbox has ended.
 */
export function lockLayer(stateDir: string, timeoutMs = 2500): Promise<Lock> {
  return takeLock(layerPaths(stateDir).lock, {
    timeoutMs,
    busy: 'a sandbox of this project runs with this review layer',
  })
}

/** Whether there is something to review. It may all equal the project: `pen diff` compares. */
export function hasChanges(stateDir: string): boolean {
  const layer = readLayer(stateDir)
  if (layer === undefined) return false
  if (layer.kind === 'copy' || !isEmpty(layerPaths(stateDir).upper)) return true
  const git = `${stateDir}/git/${REVIEW_REPOSITORY}`
  return existsSync(`${git}/synced`) && !isUnchangedCopy(`${git}/seen`)
}

/** A sandbox may have locked it: it is the top of the project there. */
function isEmpty(upper: string): boolean {
  const fd = openDirectory(upper)
  if (fd === undefined) return true
  try {
    return withAccess(fd, LIST, () => readdirSync(itself(fd)).length === 0)
  } finally {
    closeSync(fd)
  }
}

/** The last run found no change in the sandbox's own git directory. A run that was killed found nothing. */
const isUnchangedCopy = (seen: string): boolean =>
  existsSync(seen) && readFileSync(seen, 'latin1').startsWith('clean\n')

/**
 * An empty overlay layer, or the one that is there and empty. With `copy`, the caller fills `merged`. Call `finishLayer` last. The caller has
 * the lock.
 */
export function makeLayer(stateDir: string, workspace: string): void {
  const { dir, lower, upper, work, merged } = layerPaths(stateDir)
  if (readLayer(stateDir)?.kind !== 'overlay' || hasChanges(stateDir)) {
    removeLayer(stateDir)
    for (const path of [dir, upper, work, merged]) mkdirSync(path, { mode: 0o700 })
    symlinkSync(workspace, lower)
  }
  copyOwner(workspace, upper)
}

export function finishLayer(stateDir: string, layer: Omit<Layer, 'version'>): Layer {
  const whole: Layer = { version: 1, ...layer }
  writeFileAtomically(layerPaths(stateDir).record, `${JSON.stringify(whole, null, 2)}\n`, { durable: false })
  return whole
}

/** The kernel refuses a mount with the work directory of a volatile mount that ended. */
export function renewWork(stateDir: string): void {
  const { work } = layerPaths(stateDir)
  removeIfThere(work)
  mkdirSync(work, { mode: 0o700 })
}

/**
 * With the git directory that belongs to it: the next layer starts from the host's commits. The caller has the lock. The record goes first: a
 * layer that is removed in part is an unfinished one.
 */
export function removeLayer(stateDir: string): void {
  const { dir, record } = layerPaths(stateDir)
  removeIfThere(record)
  removeIfThere(dir)
  removeIfThere(`${stateDir}/git/${REVIEW_REPOSITORY}`)
}

/** A merged directory has the owner and mode that it has in the layer. */
export function copyOwner(from: string, to: string): void {
  const { uid, gid, mode } = lstatSync(from)
  if (process.geteuid?.() === 0) chownSync(to, uid, gid)
  chmodSync(to, mode & 0o7777)
}

function removeIfThere(path: string): void {
  try {
    removeTree(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
}
