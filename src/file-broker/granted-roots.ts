/**
 * The granted directories, each opened once. A grant is for the directory that the user saw: its descriptor is kept, so that
 * its number on the disk cannot be given to another, and every access asks whether the path still leads to it.
 */
import { closeSync } from 'node:fs'
import { identityOf, openBeneath, openCanonical } from '../base/beneath/open-beneath.ts'
import { type DirectoryIdentity, type FileGrant, grantCommand, rootOf } from '../policy/files/decide-grant.ts'
import { Refusal } from './refusal.ts'

export class GrantedRoots {
  readonly #open = new Map<string, number>()

  /** Opens what stands at `path`, which the grant covers, or the directory of a granted file. The descriptor is the caller's to close. */
  open(grant: FileGrant, path: string): number {
    const root = rootOf(grant)
    const below = path === root ? [] : path.slice(root === '/' ? 1 : root.length + 1).split('/')
    return openBeneath(this.#checked(grant), below)
  }

  /** Those of other grants are closed. */
  keepOnly(grants: readonly FileGrant[]): void {
    const wanted = new Set(grants.map(keyOf))
    for (const [key, fd] of this.#open)
      if (!wanted.has(key)) {
        this.#open.delete(key)
        closeSync(fd)
      }
  }

  #checked(grant: FileGrant): number {
    const now = openCanonical(rootOf(grant))
    let isKept = false
    try {
      if (!isSame(identityOf(now), grant.root)) throw replaced(grant)
      const key = keyOf(grant)
      const known = this.#open.get(key)
      if (known !== undefined) return known
      this.#open.set(key, now)
      isKept = true
      return now
    } finally {
      if (!isKept) closeSync(now)
    }
  }
}

const replaced = ({ path, write }: FileGrant): Refusal =>
  new Refusal('replaced', { fix: grantCommand(path, write ? 'write' : 'read') })

const keyOf = (grant: FileGrant): string => `${grant.root.dev}:${grant.root.ino} ${rootOf(grant)}`

const isSame = (a: DirectoryIdentity, b: DirectoryIdentity): boolean => a.dev === b.dev && a.ino === b.ino
