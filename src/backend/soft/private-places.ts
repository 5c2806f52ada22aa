/** A home and scratch of one run's own. Nothing in them is shown to another user, and nothing of them is left. */
import { chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { startTimeOf } from '../../base/kernel/processes.ts'
import { reportCleanupFailure } from '../../base/undo.ts'

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
  const remove = (): void => {
    try {
      removeTree(root)
    } catch (error) {
      reportCleanupFailure('the private home', error)
    }
  }
  return { home, scratch, remove }
}

const NAME = /^pen-soft-(\d+)-(\d+)-[0-9a-f-]{36}$/

/** Removes those of runs whose pen was killed. In /tmp, other users have theirs too: those stay. */
function sweep(base: string): void {
  for (const name of readdirSync(base)) {
    const [, pid, since] = NAME.exec(name) ?? []
    if (pid === undefined || startTimeOf(Number(pid)) === since) continue
    try {
      removeTree(`${base}/${name}`)
    } catch {
      // Another user's, or busy: the next run tries again.
    }
  }
}
