/**
 * The granted directories, each opened once. A grant is for the directory that existed when the user gave it. Its
 * descriptor stays open, so that its inode number is not reused. Every access checks that the path still leads to it.
 */
import { closeSync } from 'node:fs'
import { isAt, openBeneath, openCanonical } from '../base/beneath/open-beneath.ts'
import { type FileGrant, grantCommand, rootOf } from '../policy/files/decide-grant.ts'
import { Refusal } from './refusal.ts'

export class GrantedRoots {
  /** The name of the sandbox, for the command that grants again. */
  readonly #sandbox: string | undefined
  readonly #open = new Map<string, number>()

  constructor(sandbox: string | undefined) {
    this.#sandbox = sandbox
  }

  /** Opens a path that the grant covers, or the directory of a granted file. The caller closes the descriptor. */
  open(grant: FileGrant, path: string): number {
    const root = rootOf(grant)
    const below = path === root ? [] : path.slice(root === '/' ? 1 : root.length + 1).split('/')
    return openBeneath(this.#checked(grant), below)
  }

  /** Closes the directories of all other grants. */
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
      if (!isAt(now, grant.root)) throw replaced(grant, this.#sandbox)
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

const replaced = ({ path, write }: FileGrant, sandbox: string | undefined): Refusal =>
  new Refusal('replaced', { fix: grantCommand(path, write ? 'write' : 'read', sandbox) })

const keyOf = (grant: FileGrant): string => `${grant.root.dev}:${grant.root.ino} ${rootOf(grant)}`
