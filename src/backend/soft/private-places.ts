/** A home and scratch of one run's own. Nothing in them is shown to another user, and nothing of them is left. */
import { chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { startTimeOf } from '../../limits/cgroup-name.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { Directory } from './gate/directory.ts'
import { removeAll } from './gate/remove-tree.ts'

export interface PrivatePlaces {
  readonly home: string
  readonly scratch: string
  remove(): void
}

type Identity = { readonly uid: number; readonly gid: number } | undefined

/** Whom root becomes may not enter root's own home: then it is beside everybody's scratch, and closed. */
const baseOf = (stateDir: string, identity: Identity): string =>
  identity === undefined ? `${stateDir}/soft` : '/tmp'

/** `gitConfig`: what the home holds from the start. */
export function makePrivatePlaces(stateDir: string, identity: Identity, gitConfig?: string): PrivatePlaces {
  const base = baseOf(stateDir, identity)
  mkdirSync(base, { recursive: true, mode: 0o700 })
  sweep(base)
  const name = `pen-soft-${process.pid}-${startTimeOf(process.pid) ?? '0'}-${crypto.randomUUID()}`
  const root = `${base}/${name}`
  const [home, scratch] = [`${root}/home`, `${root}/tmp`]
  for (const path of [root, home, scratch]) {
    // Fails when somebody was there first.
    mkdirSync(path, { mode: 0o700 })
    if (identity !== undefined && path !== root) chownSync(path, identity.uid, identity.gid)
  }
  if (gitConfig !== undefined) {
    writeFileSync(`${home}/.gitconfig`, gitConfig, { mode: 0o600, flag: 'wx' })
    if (identity !== undefined) chownSync(`${home}/.gitconfig`, identity.uid, identity.gid)
  }
  if (identity !== undefined) chownSync(root, identity.uid, identity.gid)
  return { home, scratch, remove: () => removeIn(base, name) }
}

const NAME = /^pen-soft-(\d+)-(\d+)-[0-9a-f-]{36}$/

/** Those of runs whose pen was killed. */
function sweep(base: string): void {
  for (const name of readdirSync(base)) {
    const [, pid, since] = NAME.exec(name) ?? []
    if (pid !== undefined && startTimeOf(Number(pid)) !== since) removeIn(base, name)
  }
}

/** By descriptors: the run could have put links there, and what escaped from it still could. */
function removeIn(base: string, name: string): void {
  try {
    const directory = Directory.open(base as HostPath)
    try {
      if (directory.look(name) !== undefined) removeAll(directory, name)
    } finally {
      directory.close()
    }
  } catch {
    // Not ours, or busy: the next run tries again.
  }
}
