/** The review layer of a sandbox, with its changes as accept would apply them now. */
import { existsSync, lstatSync } from 'node:fs'
import type { BoxWorld } from '../backend/box.ts'
import { type Lock, takeLock } from '../config/lock.ts'
import { HostGit } from '../repository/git/host-git.ts'
import { Accepted } from './accepted.ts'
import type { Places } from './apply-changes.ts'
import type { Change } from './change.ts'
import type { Left } from './choose-changes.ts'
import { journalFile } from './journal.ts'
import { type Layer, layerPaths, noLayer, readLayer } from './layer.ts'
import { Guard, markChanges } from './mark-changes.ts'
import { mergeConflicts } from './merge-conflicts.ts'
import { OpenDirectories } from './open-directories.ts'
import { readChanges } from './read-changes.ts'
import { recoverAccept } from './recover-accept.ts'
import { recoverRollback } from './rollback.ts'

export interface ReviewOptions {
  readonly workspace: string
  /** Whether the policy lets the sandbox write a path without review. */
  readonly mayWrite: (path: string) => boolean
  readonly protectedPaths: readonly string[]
  readonly world: BoxWorld
  /** The host's git directory. */
  readonly gitDir: string | undefined
}

export interface Review {
  readonly layer: Layer
  readonly places: Places
  readonly guard: Guard
  readonly accepted: Accepted
  readonly changes: readonly Change[]
  /** What a killed accept could not finish. */
  readonly recovered: readonly Left[]
  /** The changes as they are now. */
  readonly again: () => Promise<readonly Change[]>
}

/** One accept at a time. */
export const lockAccept = (stateDir: string): Promise<Lock> =>
  takeLock(layerPaths(stateDir).acceptLock, {
    timeoutMs: 10_000,
    busy: 'another pen accepts, discards or copies changes of this project',
  })

/** The caller of an accept has its lock already. */
export async function openReview(options: ReviewOptions, lock?: Lock): Promise<Review> {
  const { workspace, world } = options
  const { stateDir } = world.sandbox
  await recoverRollback(stateDir)
  const layer = readLayer(stateDir)
  if (layer === undefined || layer.workspace !== workspace) throw noLayer()
  const { dir, upper, merged: copy, record } = layerPaths(stateDir)
  const places = { layer: dir, tree: layer.kind === 'copy' ? copy : upper, workspace }
  const recovered = await recover(stateDir, places, lock)
  const accepted = new Accepted(dir)
  const again = (): Promise<readonly Change[]> => {
    const marked = markChanges(readLayerChanges(layer, places, record), {
      ...options,
      made: layer.made,
      accepted,
    })
    return mergeAll(marked, options, layer, places)
  }
  return { layer, places, guard: new Guard(options), accepted, changes: await again(), recovered, again }
}

/** The record is written when a copy is done. */
function readLayerChanges(
  { kind, made }: Layer,
  { tree, workspace }: Places,
  record: string,
): readonly Change[] {
  const doneNs = kind === 'copy' ? lstatSync(record, { bigint: true }).ctimeNs : undefined
  const copy = doneNs === undefined ? undefined : { doneNs, beganNs: BigInt(made) * 1_000_000n }
  return readChanges(tree, workspace, { copy })
}

async function recover(stateDir: string, places: Places, held: Lock | undefined): Promise<readonly Left[]> {
  if (!existsSync(journalFile(places.layer))) return []
  const lock = held ?? (await lockAccept(stateDir))
  try {
    return recoverAccept(places)
  } finally {
    if (held === undefined) lock.release()
  }
}

async function mergeAll(
  changes: readonly Change[],
  { gitDir, world }: ReviewOptions,
  { base }: Layer,
  { workspace, tree, layer }: Places,
): Promise<readonly Change[]> {
  if (gitDir === undefined || base === null || changes.every(({ conflict }) => conflict === undefined))
    return changes
  using directories = new OpenDirectories(workspace, tree, 'read')
  using host = new HostGit(gitDir, `${layer}/empty`)
  return await mergeConflicts(changes, { world, host: host.run, base, directories })
}
