import { decideFile, showDeny } from '../files/decide-file.ts'
import { isWithin } from '../files/path.ts'
import { type AllowRule, covers, listOf, overlapping, printRule } from '../network/net-rule.ts'
import type { Policy } from '../policy.ts'
import type { Mount, PathGrant, SettingKey } from '../settings.ts'
import type { Source, Sourced } from '../source.ts'
import type { Difference } from './difference.ts'

/** The entries of a list, by their text. */
type Entries<T> = ReadonlyMap<string, { readonly rule: T; readonly source: Source | undefined }>

const byText = <T>(items: readonly Sourced<T>[], show: (rule: T) => string): Entries<T> =>
  new Map(items.map(item => [show(item.rule), item]))

interface Widens<T> {
  readonly added: (rule: T) => boolean
  readonly removed: (rule: T) => boolean
}

const yes = () => true
const no = () => false

function compareEntries<T>(
  keyOf: SettingKey | ((rule: T) => SettingKey),
  had: Entries<T>,
  has: Entries<T>,
  widens: Widens<T>,
): Difference[] {
  const row = (change: 'added' | 'removed', item: string, rule: T, source: Source | undefined) => ({
    key: typeof keyOf === 'string' ? keyOf : keyOf(rule),
    change,
    item,
    was: undefined,
    widens: widens[change](rule),
    source,
  })
  return [
    ...[...has].flatMap(([text, { rule, source }]) =>
      had.has(text) ? [] : [row('added', text, rule, source)],
    ),
    ...[...had].flatMap(([text, { rule }]) => (has.has(text) ? [] : [row('removed', text, rule, undefined)])),
  ]
}

/** Compares a list in which every entry is a separate grant. */
export function compareNames(
  key: SettingKey,
  before: readonly string[],
  after: readonly string[],
): Difference[] {
  const entries = (names: readonly string[]) =>
    new Map(names.map(rule => [rule, { rule, source: undefined }]))
  return compareEntries(key, entries(before), entries(after), { added: yes, removed: no })
}

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
  const denied = ({ files }: Policy) => byText(files.deny, showDeny)
  const protectedBy = ({ files }: Policy) => byText(files.protect, ({ path }) => path)
  return [
    ...compareEntries('files.read', onlyRead, has.read, {
      added: ({ path }) => !allowed(path, 'read'),
      removed: unlocks,
    }),
    ...compareEntries('files.write', had.write, has.write, {
      added: ({ path }) => !(allowed(path, 'read') && allowed(path, 'write')),
      removed: no,
    }),
    ...compareEntries('files.deny', denied(before), denied(after), { added: no, removed: yes }),
    ...compareEntries('files.protect', protectedBy(before), protectedBy(after), { added: no, removed: yes }),
  ]
}

/** A writable path is readable too, and is listed once. */
function grantsOf({ files }: Policy) {
  const write = byText(files.write, ({ path }) => path)
  const onlyRead = files.read.filter(({ rule }) => !write.has(rule.path))
  return { write, read: byText(onlyRead, ({ path }) => path) }
}

/** A name that a wildcard already allowed is not new. A denial that a wider one replaces is not lost. */
export function compareHosts({ network: before }: Policy, { network: after }: Policy): Difference[] {
  const near = overlapping(before.allow.map(({ rule }) => rule))
  const keyOf = (rule: AllowRule) => `network.${listOf(rule)}` as const
  return [
    ...compareEntries(keyOf, byText(before.allow, showAllow), byText(after.allow, showAllow), {
      // An unopened host leaves the tokens of a sign-in inside.
      added: rule => rule.open === false || !near(rule).some(known => covers(known, rule)),
      removed: no,
    }),
    ...compareEntries('network.deny', byText(before.deny, printRule), byText(after.deny, printRule), {
      added: no,
      removed: rule => !after.deny.some(other => covers(other.rule, rule)),
    }),
  ]
}

const showAllow = (rule: AllowRule): string =>
  rule.open === false ? `${printRule(rule)} (never opened)` : printRule(rule)

export function compareMounts(before: Policy, after: Policy): Difference[] {
  // Removing a mount uncovers the files beneath it.
  const uncovers = ({ at }: Mount) =>
    after.files.read.some(({ rule }) => isWithin(at, rule.path) || isWithin(rule.path, at))
  return compareEntries('mounts', byText(before.mounts, showMount), byText(after.mounts, showMount), {
    added: yes,
    removed: uncovers,
  })
}

const showMount = (mount: Mount): string =>
  mount.kind === 'volume'
    ? `volume ${mount.volume} at ${mount.at}`
    : `${mount.host} at ${mount.at} (${mount.mode})`
