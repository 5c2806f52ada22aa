/**
 * Puts a checkpoint in place of a review layer that is not mounted. A journal makes all renames one step: before it nothing has
 * changed, and after it every command that opens the layer finishes first.
 */
import { chmodSync, closeSync, existsSync, lstatSync, renameSync, rmSync, type Stats } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { CHANGE, openDirectory, unlock } from '../../base/beneath/beneath.ts'
import { PenError } from '../../base/error.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import type { Lock } from '../../config/lock.ts'
import { finishLayer, type Layer, layerPaths, lockLayer, noLayer, readLayer } from '../layer.ts'
import {
  checkpointPath,
  copyParts,
  dropOldest,
  findCheckpoint,
  inStage,
  nextName,
  partsOf,
  writeRecord,
} from './checkpoint.ts'

interface Journal {
  /** The new directory. At the end it has what was in the layer. */
  readonly stage: string
  /** The name that it then gets. */
  readonly name: string
  readonly layer: Layer
  /** Inodes of the copy. Null for a checkpoint without a git directory. */
  readonly tree: number
  readonly git: number | null
  /** Of the tree in the layer, and of the one in the checkpoint. */
  readonly modes: readonly [before: number, after: number]
}

/** The caller holds the lock of accepts and that of the layer. Returns the checkpoint with what was there before. */
export function rollBack(stateDir: string, name: string): string {
  finishRollback(stateDir)
  const now = readLayer(stateDir)
  if (now === undefined) throw noLayer()
  const { layer } = findCheckpoint(stateDir, name)
  if (layer.kind !== now.kind)
    throw new PenError('STATE', {
      what: `the checkpoint ${name} is of another kind of layer (${layer.kind}, now ${now.kind})`,
      at: checkpointPath(stateDir, name),
      hint: 'copy what you need from there',
    })
  const from = checkpointPath(stateDir, name)
  const before = nextName(stateDir, 'rollback')
  inStage(stateDir, stage => {
    copyParts({ tree: `${from}/tree`, git: `${from}/git` }, stage)
    writeRecord(stage, {
      version: 1,
      name: before,
      made: Date.now(),
      why: 'rollback',
      layer: now,
      size: null,
    })
    const fresh = lstatSync(`${stage}/tree`)
    const journal: Journal = {
      stage,
      name: before,
      layer,
      tree: fresh.ino,
      git: inodeOf(`${stage}/git`) ?? null,
      modes: [modeOf(lstatSync(partsOf(stateDir, now).tree)), modeOf(fresh)],
    }
    writeFileAtomically(layerPaths(stateDir).rollback, JSON.stringify(journal), { durable: false })
  })
  finishRollback(stateDir)
  dropOldest(stateDir)
  return before
}

/** Does nothing without a journal. The caller holds the lock of the layer. Each step may be done already. */
export function finishRollback(stateDir: string): void {
  const bytes = readRegularFile(layerPaths(stateDir).rollback, { maxBytes: 65_536 })
  if (bytes === undefined) return
  const { stage, name, layer, tree, git, modes } = JSON.parse(bytes.toString()) as Journal
  const parts = partsOf(stateDir, layer)
  unlockToMove(parts.tree, `${stage}/tree`)
  exchange(parts.tree, stage, 'tree', tree)
  exchange(parts.git, stage, 'git', git)
  chmodSync(parts.tree, modes[1])
  if (existsSync(stage)) chmodSync(`${stage}/tree`, modes[0])
  // The record of a copy keeps its ctime: it tells what changed since.
  if (!Bun.deepEquals(readLayer(stateDir), layer)) finishLayer(stateDir, layer)
  if (existsSync(stage)) renameSync(stage, checkpointPath(stateDir, name))
  rmSync(layerPaths(stateDir).rollback)
}

/** For commands that look at the layer: they wait for a rollback that is at work, and finish one that was killed. */
export async function recoverRollback(stateDir: string): Promise<void> {
  if (!existsSync(layerPaths(stateDir).rollback)) return
  const lock: Lock = await lockLayer(stateDir)
  try {
    finishRollback(stateDir)
  } finally {
    lock.release()
  }
}

const modeOf = ({ mode }: Stats): number => mode & 0o7777

const inodeOf = (path: string): number | undefined => lstatSync(path, { throwIfNoEntry: false })?.ino

/** By plain renames, which every file system has. An inode says whether it is done. */
function exchange(path: string, stage: string, part: 'tree' | 'git', wanted: number | null): void {
  const [fresh, old] = [`${stage}/${part}`, `${stage}/old-${part}`]
  const now = inodeOf(path) ?? null
  if (now !== wanted) {
    if (now !== null) renameSync(path, old)
    if (wanted !== null) renameSync(fresh, path)
  }
  if (existsSync(old)) renameSync(old, fresh)
}

/** A directory that moves needs write access to itself, for its `..`. The journal has its mode. */
function unlockToMove(...paths: readonly string[]): void {
  for (const path of paths) {
    const fd = openDirectory(path)
    if (fd === undefined) continue
    unlock(fd, CHANGE)
    closeSync(fd)
  }
}
