/** A protected place while a sandbox runs: how it is reached, and what was there before. */
import {
  type BigIntStats,
  closeSync,
  fstatSync,
  lchownSync,
  linkSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { at, CHANGE, openDirectory, type Spot, withAccess, withSpot } from '../base/beneath/beneath.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { MAX_GIT_CONFIG, parseGitConfig, riskySettings } from '../survey/git/config.ts'
import type { Watched } from '../survey/places.ts'
import { asideName } from './watch-record.ts'

interface Identity {
  readonly dev: bigint
  readonly ino: bigint
  readonly born: bigint
}

export interface Place extends Watched {
  readonly names: readonly string[]
  /** For a mounted place: the file's identity, until the mount is lost. */
  identity: Identity | undefined
  /** Mounted again after a loss. A descriptor that was opened in between can still write it, so its content is checked too. */
  regained: boolean
  /** It was held, and was removed or replaced. What appears next may be the user's, so all of it is kept. */
  mayBeUsers: boolean
  /** The last content that its rule allowed, for restoring it. */
  good: Buffer | undefined
  /** Already reported as immovable. */
  stuck: boolean
  /** Already reported as restored. */
  told: boolean
}

export const place = (w: Watched, identity: Place['identity']): Place => ({
  path: w.path,
  root: w.root,
  rule: w.rule,
  names: w.path.slice(w.root.length + 1).split('/'),
  identity,
  regained: false,
  mayBeUsers: false,
  good: undefined,
  stuck: false,
  told: false,
})

export const identityOf = ({ dev, ino, birthtimeNs }: BigIntStats): Identity => ({
  dev,
  ino,
  born: birthtimeNs,
})

/** Also compares creation times, because inodes are reused at once. */
export const isSame = (one: Identity, two: Identity): boolean =>
  one.dev === two.dev && one.ino === two.ino && one.born === two.born

/** Read without following links, and judged as read: pen may write it back into the workspace, where the sandbox sees it. */
export function remember(p: Place, { parent, name }: Spot): void {
  if (p.rule.kind !== 'git-config') return
  try {
    const bytes = readRegularFile(at(parent, name).toString(), { maxBytes: MAX_GIT_CONFIG })
    const settings = bytes === undefined ? undefined : parseGitConfig(bytes.toString('utf8'))
    const { known } = p.rule
    if (settings !== undefined && riskySettings(settings).every(s => known.includes(s))) p.good = bytes
  } catch (error) {
    if (!(error instanceof PenError)) throw error
  }
}

export function putBack({ rule, good }: Place, { parent, name }: Pick<Spot, 'parent' | 'name'>): boolean {
  try {
    return withAccess(parent, CHANGE, () => {
      if (rule.kind === 'link') symlinkSync(rule.text, at(parent, name))
      else if (rule.kind === 'git-config' && good !== undefined) {
        // As git does: in place, it would look like a write of the sandbox.
        const aside = at(parent, asideName())
        writeFileSync(aside, good, { flag: 'wx', mode: 0o644 })
        try {
          linkSync(aside, at(parent, name))
        } finally {
          unlinkSync(aside)
        }
      } else return false
      giveToOwner(parent, name)
      return true
    })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

/** Restores a removed link, but only in its own directory: without that directory nothing needs the link. */
export function putLinkBack(p: Place, root: number): boolean {
  if (p.rule.kind !== 'link') return false
  const above = p.names.slice(0, -1)
  const name = p.names.at(-1) ?? ''
  if (above.length === 0) return putBack(p, { parent: root, name })
  const put = withSpot(root, above, ({ parent, name: last, depth }) => {
    const dir = depth < above.length ? undefined : openDirectory(at(parent, last))
    if (dir === undefined) return false
    try {
      return putBack(p, { parent: dir, name })
    } finally {
      closeSync(dir)
    }
  })
  return put === true
}

/** A file that root restores in another user's project gets its old owner. */
function giveToOwner(parent: number, name: string): void {
  const { uid, gid } = fstatSync(parent)
  if (process.getuid?.() === 0 && uid !== 0) lchownSync(at(parent, name), uid, gid)
}
