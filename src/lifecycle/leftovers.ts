/** Finds and removes leftovers of killed supervisors: each names an owner that is dead. Also removes unused images. */
import { existsSync } from 'node:fs'
import { orphanDirectories } from '../backend/container/inside-directory.ts'
import { orphanContainers } from '../backend/container/orphan-containers.ts'
import { unusedImages } from '../image/in-use.ts'
import { sweepRemembered } from '../limits/stale.ts'
import { unfinishedCopies } from '../review/checkpoint/checkpoint.ts'
import { type KnownSandbox, listSandboxes, refuseStateOfOthers, stateOfUser } from './list.ts'

export interface Leftover {
  readonly kind: 'record' | 'cgroup' | 'container' | 'directory' | 'image'
  readonly name: string
}

/** State of a project whose directory does not exist. It may be on a disk that is not mounted, so pen only lists it. */
export interface Abandoned {
  readonly id: string
  readonly workspace: string
}

export const listAbandoned = (sandboxes: readonly KnownSandbox[]): Abandoned[] =>
  sandboxes.flatMap(({ id, state, workspace }) =>
    state !== 'stopped' || workspace === undefined || existsSync(workspace) ? [] : [{ id, workspace }],
  )

interface Collecting {
  readonly remove: boolean
  /** Treats every image as unused. */
  readonly everyImage?: boolean
}

export async function collectLeftovers({ remove, everyImage = false }: Collecting): Promise<Leftover[]> {
  if (remove) refuseStateOfOthers()
  const options = { remove }
  const sandboxes = await listSandboxes({ repair: remove })
  const records = sandboxes.filter(({ repaired }) => repaired)
  const state = stateOfUser()
  const cacheDir = `${state}/cache`
  const cgroups = sweepRemembered(`${cacheDir}/cgroup-places`, options)
  const containers = await orphanContainers(cacheDir, options)
  // After the containers, which mount them.
  const directories = sandboxes
    .filter(({ state }) => state === 'stopped')
    .flatMap(({ stateDir }) => orphanDirectories(stateDir, options))
  const copies = sandboxes.flatMap(({ stateDir }) => unfinishedCopies(stateDir, options))
  const images = await unusedImages(state, everyImage ? [] : sandboxes.map(({ stateDir }) => stateDir), {
    remove,
    newest: everyImage,
  })
  return [
    ...records.map(({ id }): Leftover => ({ kind: 'record', name: id })),
    ...cgroups.map((name): Leftover => ({ kind: 'cgroup', name })),
    ...containers.map((name): Leftover => ({ kind: 'container', name })),
    ...[...directories, ...copies].map((name): Leftover => ({ kind: 'directory', name })),
    ...images.map((name): Leftover => ({ kind: 'image', name })),
  ]
}
