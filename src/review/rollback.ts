/**
 * Puts a checkpoint in place of a review layer that is not mounted. A journal makes the two exchanges one step: before it nothing has
 * changed, and after it every command that opens the layer finishes first.
 */
import { chmodSync, closeSync, existsSync, lstatSync, renameSync, rmSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { CHANGE, openDirectory, unlock } from '../base/beneath/beneath.ts'
import { exchangePaths } from '../base/beneath/rename-at.ts'
import { PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import type { Lock } from '../config/lock.ts'
import {
  type Checkpoint,
  checkpointPath,
  copyParts,
  dropOldest,
  findCheckpoint,
  newStage,
  nextName,
  partsOf,
  writeRecord,
} from './checkpoint.ts'
import { finishLayer, type Layer, layerPaths, lockLayer, noLayer, readLayer } from './layer.ts'

interface Journal {
  /** The new directory. After the exchange it has what was there before. */
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
  const stage = newStage(stateDir)
  copyParts({ tree: `${from}/tree`, git: `${from}/git` }, stage)
  const record: Checkpoint = {
    version: 1,
    name: before,
    made: Date.now(),
    why: 'rollback',
    layer: now,
    size: null,
  }
  writeRecord(stage, record)
  const { tree } = partsOf(stateDir, now)
  const journal: Journal = {
    stage,
    name: before,
    layer,
    tree: lstatSync(`${stage}/tree`).ino,
    git: inodeOf(`${stage}/git`) ?? null,
    modes: [lstatSync(tree).mode & 0o7777, lstatSync(`${stage}/tree`).mode & 0o7777],
  }
  writeFileAtomically(layerPaths(stateDir).rollback, JSON.stringify(journal), { durable: false })
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
  if (inodeOf(parts.tree) !== tree) exchangeUnlocked(parts.tree, `${stage}/tree`)
  chmodSync(parts.tree, modes[1])
  if (existsSync(stage)) chmodSync(`${stage}/tree`, modes[0])
  const own = inodeOf(parts.git) ?? null
  if (own !== null && git !== null && own !== git) exchangePaths(parts.git, `${stage}/git`)
  else if (git === null && own !== null) renameSync(parts.git, `${stage}/git`)
  else if (own === null && git !== null) renameSync(`${stage}/git`, parts.git)
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

const inodeOf = (path: string): number | undefined => lstatSync(path, { throwIfNoEntry: false })?.ino

/** A directory that moves needs write access to itself, for its `..`. The journal has its mode. */
function exchangeUnlocked(one: string, other: string): void {
  const opened = [one, other].map(path => openDirectory(path))
  for (const fd of opened) if (fd !== undefined) unlock(fd, CHANGE)
  for (const fd of opened) if (fd !== undefined) closeSync(fd)
  exchangePaths(one, other)
}
