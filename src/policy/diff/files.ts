import { decideFile, showDeny } from '../files/decide-file.ts'
import { isWithin } from '../files/path.ts'
import type { Policy } from '../policy.ts'
import type { PathGrant, SettingKey } from '../settings.ts'
import type { Source, Sourced } from '../source.ts'
import type { Difference } from './row.ts'

/** Compares grants, denials and protected places. A grant inside an earlier grant adds nothing. */
export function compareFiles(before: Policy, after: Policy): Difference[] {
  const [had, has] = [grantsOf(before), grantsOf(after)]
  const allowed = (path: PathGrant['path'], access: 'read' | 'write') => decideFile(before, path, access).ok
  // The most specific grant wins, so a read grant inside a writable tree keeps that part read-only.
  const unlocks = ({ path, rank }: PathGrant) =>
    [...has.write.values()].some(
      ({ rule }) => isWithin(path, rule.path) || (isWithin(rule.path, path) && rule.rank <= rank),
    )
  // A path that becomes writable is listed as a write, not also as a removed read.
  const onlyRead = new Map([...had.read].filter(([path]) => !has.write.has(path)))
  return [
    ...rows('files.read', onlyRead, has.read, ({ path }) => !allowed(path, 'read'), unlocks),
    ...rows(
      'files.write',
      had.write,
      has.write,
      ({ path }) => !(allowed(path, 'read') && allowed(path, 'write')),
      () => false,
    ),
    ...rows('files.deny', denialsOf(before), denialsOf(after), no, yes),
    ...rows('files.protect', protectedBy(before), protectedBy(after), no, yes),
  ]
}

const yes = () => true
const no = () => false

type Items<T> = ReadonlyMap<string, Sourced<T>>

function rows<T>(
  key: SettingKey,
  had: Items<T>,
  has: Items<T>,
  addedWidens: (rule: T) => boolean,
  removedWidens: (rule: T) => boolean,
): Difference[] {
  const row = (change: 'added' | 'removed', item: string, widens: boolean, source: Source | undefined) => ({
    key,
    change,
    item,
    was: undefined,
    widens,
    source,
  })
  return [
    ...[...has]
      .filter(([text]) => !had.has(text))
      .map(([text, { rule, source }]) => row('added', text, addedWidens(rule), source)),
    ...[...had]
      .filter(([text]) => !has.has(text))
      .map(([text, { rule }]) => row('removed', text, removedWidens(rule), undefined)),
  ]
}

/** A writable path is readable too, and is listed once. */
function grantsOf({ files }: Policy): { readonly read: Items<PathGrant>; readonly write: Items<PathGrant> } {
  const byPath = (grants: readonly Sourced<PathGrant>[]) =>
    new Map(grants.map(grant => [grant.rule.path as string, grant]))
  const write = byPath(files.write)
  return { write, read: byPath(files.read.filter(({ rule }) => !write.has(rule.path))) }
}

const denialsOf = ({ files }: Policy) => new Map(files.deny.map(item => [showDeny(item.rule), item]))
const protectedBy = ({ files }: Policy) => new Map(files.protect.map(item => [item.rule.path, item]))
