/** Checkpoints of a review layer: copies of what the sandbox changed, in the layer's directory. The caller holds the lock of accepts. */
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { errnoOf, errnoText, PenError } from '../../base/error.ts'
import { nearest } from '../../base/nearest.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { tryLock } from '../../config/lock.ts'
import { isName } from '../../config/project.ts'
import { type Layer, layerPaths, noLayer, REVIEW_REPOSITORY, readLayer } from '../layer.ts'
import { copyTree, type TreeSize } from './copy-tree.ts'

/** `accept`, `rollback`: pen made it, and keeps the latest of these. */
export type Why = 'asked' | 'accept' | 'rollback'

export interface Checkpoint {
  readonly version: 1
  readonly name: string
  /** In milliseconds since 1970. */
  readonly made: number
  readonly why: Why
  readonly layer: Layer
  /** Null for what a rollback put aside: it is not copied, so it is not counted. */
  readonly size: TreeSize | null
}

const MOST_AUTOMATIC = 5
const MOST: TreeSize = { names: 500_000, bytes: Number.POSITIVE_INFINITY }
const MOST_WITHOUT_ASKING: TreeSize = { names: 100_000, bytes: 2 ** 30 }
const RECORD = 'checkpoint.json'
/** Not a name, so it is in no list. */
const UNFINISHED = '.new-'

const directoryOf = (stateDir: string): string => `${layerPaths(stateDir).dir}/checkpoints`

export const checkpointPath = (stateDir: string, name: string): string => `${directoryOf(stateDir)}/${name}`

/** What a sandbox wrote: the files, and its own git directory. */
export function partsOf(stateDir: string, { kind }: Layer): { readonly tree: string; readonly git: string } {
  const { upper, merged } = layerPaths(stateDir)
  return { tree: kind === 'copy' ? merged : upper, git: `${stateDir}/git/${REVIEW_REPOSITORY}` }
}

/** Oldest first. One whose record a power failure damaged is in no list, and goes with the layer. */
export function listCheckpoints(stateDir: string): readonly Checkpoint[] {
  const directory = directoryOf(stateDir)
  if (!existsSync(directory)) return []
  return readdirSync(directory)
    .filter(isName)
    .flatMap(name => readRecord(`${directory}/${name}/${RECORD}`) ?? [])
    .sort((a, b) => a.made - b.made)
}

function readRecord(path: string): Checkpoint | undefined {
  const bytes = readRegularFile(path, { maxBytes: 65_536 })
  try {
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as Checkpoint)
  } catch {
    return undefined
  }
}

export function findCheckpoint(stateDir: string, name: string): Checkpoint {
  const known = listCheckpoints(stateDir)
  const found = known.find(one => one.name === name)
  if (found !== undefined) return found
  const meant = nearest(
    name,
    known.map(one => one.name),
  )
  throw new PenError('USAGE', {
    what: `there is no checkpoint "${printable(name, 64)}" of this layer`,
    hint:
      meant === undefined ? 'pen checkpoints lists all' : `did you mean ${meant}? pen checkpoints lists all`,
  })
}

/** A copy that has no name yet. */
export interface Staged {
  readonly stage: string
  readonly checkpoint: Checkpoint
}

/** No process writes the layer meanwhile. */
export function stageCheckpoint(stateDir: string, why: Why, asked?: string): Staged {
  const layer = readLayer(stateDir)
  if (layer === undefined) throw noLayer()
  const name = asked ?? nextName(stateDir, why)
  if (!isName(name))
    throw new PenError('USAGE', {
      what: `"${printable(name, 64)}" cannot be the name of a checkpoint`,
      hint: 'use up to 32 of a-z, 0-9 and -, beginning with a letter or digit',
    })
  if (existsSync(checkpointPath(stateDir, name)))
    throw new PenError('USAGE', {
      what: `there is a checkpoint "${name}" already`,
      hint: `choose another name, or first: pen checkpoints --remove ${name}`,
    })
  const most = why === 'asked' ? MOST : MOST_WITHOUT_ASKING
  return inStage(stateDir, stage => {
    const size = copyParts(partsOf(stateDir, layer), stage, most)
    const checkpoint: Checkpoint = { version: 1, name, made: Date.now(), why, layer, size }
    writeRecord(stage, checkpoint)
    return { stage, checkpoint }
  })
}

export function keepCheckpoint(stateDir: string, { stage, checkpoint }: Staged): Checkpoint {
  renameSync(stage, checkpointPath(stateDir, checkpoint.name))
  dropOldest(stateDir)
  return checkpoint
}

export function removeCheckpoint(stateDir: string, name: string): void {
  const { name: known } = findCheckpoint(stateDir, name)
  // Without a name of its own, it is in no list when pen is killed now.
  const stage = `${directoryOf(stateDir)}/${UNFINISHED}${crypto.randomUUID()}`
  renameSync(checkpointPath(stateDir, known), stage)
  removeTree(stage)
}

/** What pen made by itself. */
export function dropOldest(stateDir: string): void {
  const automatic = listCheckpoints(stateDir).filter(({ why }) => why !== 'asked')
  for (const { name } of automatic.slice(0, -MOST_AUTOMATIC)) removeCheckpoint(stateDir, name)
}

/** A number that no checkpoint has. */
export function nextName(stateDir: string, why: Why): string {
  const numbers = listCheckpoints(stateDir).map(({ name }) => Number(/\d{1,9}$/.exec(name)?.[0] ?? 0))
  const next = Math.max(0, ...numbers) + 1
  return why === 'asked' ? `${next}` : `${why}-${next}`
}

/** Fills a new directory. A failure leaves nothing. What a killed pen left is removed first. */
export function inStage<T>(stateDir: string, fill: (stage: string) => T): T {
  const directory = directoryOf(stateDir)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  for (const path of unfinishedIn(directory)) removeTree(path)
  const stage = `${directory}/${UNFINISHED}${crypto.randomUUID()}`
  mkdirSync(stage, { mode: 0o700 })
  try {
    return fill(stage)
  } catch (error) {
    removeTree(stage)
    if (error instanceof PenError || errnoOf(error) === undefined) throw error
    throw new PenError('STATE', {
      what: `the review layer could not be copied (${errnoText(error)}); nothing was kept`,
      at: directory,
      hint: 'check that the disk is not full: pen checkpoints lists what can be removed',
      cause: error,
    })
  }
}

/** Copies that a killed pen left. None while another pen makes one. */
export function unfinishedCopies(
  stateDir: string,
  { remove }: { readonly remove: boolean },
): readonly string[] {
  const directory = directoryOf(stateDir)
  const { acceptLock, rollback } = layerPaths(stateDir)
  const lock = existsSync(directory) ? tryLock(acceptLock) : undefined
  if (lock === undefined) return []
  try {
    // The next command on the layer needs the copy of a rollback that was killed.
    const found = existsSync(rollback) ? [] : unfinishedIn(directory)
    if (remove) for (const path of found) removeTree(path)
    return found
  } finally {
    lock.release()
  }
}

const unfinishedIn = (directory: string): readonly string[] =>
  readdirSync(directory).flatMap(name => (name.startsWith(UNFINISHED) ? `${directory}/${name}` : []))

export const writeRecord = (stage: string, checkpoint: Checkpoint): void =>
  writeFileSync(`${stage}/${RECORD}`, `${JSON.stringify(checkpoint, null, 2)}\n`, { mode: 0o600 })

export function copyParts(
  { tree, git }: { readonly tree: string; readonly git: string },
  stage: string,
  most = MOST,
): TreeSize {
  const files = copyTree(tree, `${stage}/tree`, most)
  const commits = existsSync(git) ? copyTree(git, `${stage}/git`, most) : { names: 0, bytes: 0 }
  return { names: files.names, bytes: files.bytes + commits.bytes }
}
