/**
 * Protects pen's own files when they are inside a writable directory, as after an install in one project. If the grant is for
 * pen's files themselves, pen refuses to start.
 */
import { lstatSync, type Stats } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { type PenPlaces, penPlaces } from '../base/pen-places.ts'
import { shellWord } from '../base/printable.ts'
import { type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { PEN_ITSELF } from '../policy/source.ts'

/** The files of a pen package that the host runs, and a standalone binary. */
const FILES = ['/package.json', '/dist/index.js', '/dist/pen', '']

export function protectPen(policy: Policy, places: PenPlaces = penPlaces(policy.workspace)): Policy {
  const grants = policy.files.write.map(({ rule }) => rule.path as string)
  const mounts = policy.mounts.flatMap(({ rule }) =>
    rule.kind === 'host' && rule.mode === 'rw' ? [rule.host as string] : [],
  )
  for (const tree of mounts)
    if (places.run.some(part => meets(part, tree)))
      throw refusal(tree, 'the policy mounts it for writing', 'mount it read-only, or install pen elsewhere')
  for (const tree of grants) {
    const part = places.run.find(one => isWithin(tree, one)) ?? places.all.find(one => one === tree)
    if (part !== undefined)
      throw refusal(
        part,
        `the sandbox may write ${tree}, which is a part of it`,
        'install pen outside of what the sandbox may write: npm install --global',
      )
  }
  const held = places.all.filter(place => grants.some(tree => isWithin(place, tree)))
  for (const place of held) for (const name of FILES) refuseHardLink(`${place}${name}`)
  if (held.length === 0) return policy
  const source = { layer: PEN_ITSELF, place: undefined }
  const protect = held.map(path => ({ rule: { path: path as HostPath }, source }))
  return { ...policy, files: { ...policy.files, protect: [...policy.files.protect, ...protect] } }
}

const meets = (part: string, tree: string): boolean => isWithin(part, tree) || isWithin(tree, part)

const refusal = (at: string, why: string, hint: string): PenError =>
  new PenError('PATH_REFUSED', {
    what: `pen itself is installed there, and ${why}: the sandbox could replace the program that your next command runs`,
    at,
    hint,
  })

/** A mount protects one path. Through another hard link the same file would be writable. */
function refuseHardLink(file: string): void {
  let stats: Stats | undefined
  try {
    stats = lstatSync(file, { throwIfNoEntry: false })
  } catch (error) {
    // ENOTDIR, ELOOP or EACCES: the file does not exist here.
    if (errnoOf(error) === undefined) throw error
  }
  if (stats === undefined || !stats.isFile() || stats.nlink <= 1) return
  const word = shellWord(file) ?? 'FILE'
  throw new PenError('PATH_REFUSED', {
    what: 'this file of pen itself has other hard links, and by one of them a sandbox could replace it',
    at: file,
    hint: `cp -p ${word} ${word}.new && mv ${word}.new ${word}; or install it as a copy: bun install --backend copyfile, pnpm install --package-import-method copy`,
  })
}
