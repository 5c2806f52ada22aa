/** A home and scratch for one run. No other user can read them, and they are removed at the end. */
import { chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { startTimeOf } from '../../base/kernel/processes.ts'
import { reportCleanupFailure } from '../../base/undo.ts'

export interface PrivateDirectories {
  readonly home: string
  readonly scratch: string
  remove(): void
}

type Identity = { readonly uid: number; readonly gid: number } | undefined

/** The user that root becomes may not enter root's home. The directories are then in /tmp, with mode 0700. */
const baseOf = (stateDir: string, identity: Identity): string =>
  identity === undefined ? `${stateDir}/soft` : '/tmp'

/** `gitConfig` is the home's first file. */
export function makePrivateDirectories(
  stateDir: string,
  identity: Identity,
  gitConfig?: string,
): PrivateDirectories {
  const base = baseOf(stateDir, identity)
  mkdirSync(base, { recursive: true, mode: 0o700 })
  sweep(base)
  const name = `pen-soft-${process.pid}-${startTimeOf(process.pid) ?? '0'}-${crypto.randomUUID()}`
  const root = `${base}/${name}`
  const [home, scratch] = [`${root}/home`, `${root}/tmp`]
  for (const path of [root, home, scratch]) {
    // Fails when the path exists.
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

/** Removes the directories of killed pens. In /tmp it leaves those of other users. */
function sweep(base: string): void {
  for (const name of readdirSync(base)) {
    const [, pid, since] = NAME.exec(name) ?? []
    if (pid === undefined || startTimeOf(Number(pid)) === since) continue
    try {
      removeTree(`${base}/${name}`)
    } catch {
      // It belongs to another user, or is busy. The next run tries again.
    }
  }
}
