/** The review layer of a sandbox, with its changes as accept would apply them now. */
import { existsSync, lstatSync } from 'node:fs'
import type { BoxWorld } from '../backend/box.ts'
import { PenError } from '../base/error.ts'
import { type Lock, takeLock } from '../config/lock.ts'
import type { Pinned } from '../repository/copy/pin-tips.ts'
import { HostGit } from '../repository/git/host-git.ts'
import { Accepted } from './accepted.ts'
import type { Places } from './apply-changes.ts'
import type { Change } from './change.ts'
import { recoverRollback } from './checkpoint/rollback.ts'
import type { Left } from './choose-changes.ts'
import type { HostRepository } from './host-repository.ts'
import { journalFile } from './journal.ts'
import { type Layer, layerPaths, noLayer, REVIEW_REPOSITORY, readLayer } from './layer.ts'
import { Guard, markChanges } from './mark-changes.ts'
import { type DeletedOptions, markDeleted } from './mark-deleted.ts'
import { markIgnored } from './mark-ignored.ts'
import { mergeConflicts } from './merge-conflicts.ts'
import { OpenDirectories } from './open-directories.ts'
import { readChanges } from './read-changes.ts'
import { recoverAccept } from './recover-accept.ts'

export interface ReviewOptions {
  readonly workspace: string
  /** Whether the policy lets the sandbox write a path without review. */
  readonly mayWrite: (path: string) => boolean
  readonly protectedPaths: readonly string[]
  readonly world: BoxWorld
  readonly repository: HostRepository | undefined
}

export interface Review {
  readonly layer: Layer
  readonly places: Places
  readonly guard: Guard
  readonly accepted: Accepted
  readonly changes: readonly Change[]
  /** Why `changes` do not say what git ignores. A list then has everything. */
  readonly ignoresUnknown: PenError | undefined
  /** What the layer's git directory may have pinned in the user's repository. */
  readonly pinned: Pinned | undefined
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
  const again = async (): Promise<readonly Change[]> => {
    using directories = new OpenDirectories(workspace, places.tree, 'read')
    const { made, base } = layer
    const marked = markChanges(readLayerChanges(layer, places, record), { ...options, made, accepted })
    const git = { repository: options.repository, base, directories, empty: emptyIn(dir) }
    return await mergeAll(await markDeleted(marked, { ...git, accepted }), { ...git, world })
  }
  const shown = await withIgnored(await again(), options, places)
  const entry = `${stateDir}/git/${REVIEW_REPOSITORY}`
  const gitDir = options.repository?.dir
  const pinned = gitDir === undefined ? undefined : { gitDir, sandbox: world.sandbox.id, entry }
  return { layer, places, guard: new Guard(options), accepted, ...shown, pinned, recovered, again }
}

async function withIgnored(
  changes: readonly Change[],
  { repository, world, workspace }: ReviewOptions,
  { layer }: Places,
): Promise<Pick<Review, 'changes' | 'ignoresUnknown'>> {
  if (repository === undefined || changes.length === 0) return { changes, ignoresUnknown: undefined }
  try {
    const options = { repository, world, workspace, empty: emptyIn(layer) }
    return { changes: await markIgnored(changes, options), ignoresUnknown: undefined }
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return { changes, ignoresUnknown: error }
  }
}

const emptyIn = (layer: string): string => `${layer}/empty`

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
  { repository, base, empty, ...options }: Omit<DeletedOptions, 'accepted'> & { readonly world: BoxWorld },
): Promise<readonly Change[]> {
  if (repository === undefined || base === null || changes.every(({ conflict }) => conflict === undefined))
    return changes
  using host = new HostGit(repository.dir, empty)
  return await mergeConflicts(changes, { ...options, host: host.run, base })
}
