/** The changes of a review layer as a list for the user, who decides on it. All names are hostile. */
import { printable, shellWord } from '../../base/printable.ts'
import { pathText } from '../../repository/sync/changed-paths.ts'
import type { Change } from '../../review/change.ts'
import type { Left } from '../../review/choose-changes.ts'
import type { Entry } from '../../review/entry.ts'
import { countKinds, foldGenerated, type GeneratedTree } from '../../review/fold-generated.ts'
import { withName } from '../frame/sandbox-name.ts'
import type { Colour, Paint } from './colour.ts'
import { showSize } from './table.ts'

/** Names are never cut: the user decides on what is shown. */
const LONGEST = 16_384

export const showPath = (path: string): string => printable(pathText(path), LONGEST)

export interface ListOptions {
  readonly paint: Paint
  /** From new paths to old ones. */
  readonly renames: ReadonlyMap<string, string>
  /** Paths that the user named: generated trees are opened there. */
  readonly named: readonly string[]
  /** The sandbox, for commands. */
  readonly name: string | undefined
}

const SIGNS: Readonly<Record<Change['kind'], readonly [sign: string, colour: Colour]>> = {
  added: ['+', 'green'],
  changed: ['~', 'yellow'],
  deleted: ['-', 'red'],
  mode: ['m', 'yellow'],
  type: ['t', 'yellow'],
}

/** Each change is in the first group that fits. What the user should not miss comes first. */
const GROUPS: readonly (readonly [title: string, fits: (change: Change) => boolean])[] = [
  ['never applied:', ({ refused }) => refused !== undefined],
  ['changed on both sides:', ({ conflict }) => conflict !== undefined],
  ['protected, applied only by name:', change => change.protected !== undefined],
  ['look at these first:', ({ attention }) => attention !== undefined],
  ['deleted:', ({ kind }) => kind === 'deleted'],
  ['changed:', () => true],
]

/** Without generated trees. A renamed file is listed at its new path, where that is listed and the old one has no mark. */
export function listedGroups(
  changes: readonly Change[],
  { renames, named }: Pick<ListOptions, 'renames' | 'named'>,
): readonly (readonly [title: string, changes: readonly Change[]])[] {
  const { listed } = foldGenerated(changes, named)
  const from = new Set(listed.map(({ path }) => renames.get(path)))
  let rest = listed.filter(change => !from.has(change.path) || isMarked(change))
  return GROUPS.flatMap(([title, fits]) => {
    const inside = rest.filter(fits)
    rest = rest.filter(change => !fits(change))
    return inside.length === 0 ? [] : [[title, inside] as const]
  })
}

const isMarked = (change: Change): boolean =>
  [change.refused, change.conflict, change.protected, change.attention].some(mark => mark !== undefined)

export function reviewList(changes: readonly Change[], options: ListOptions): string[] {
  const { paint, renames, named } = options
  const { trees } = foldGenerated(changes, named)
  const lines = listedGroups(changes, options).flatMap(([title, inside]) => [
    paint('bold', title),
    ...inside.map(change => changeLine(change, renames.get(change.path), paint)),
  ])
  return trees.length === 0
    ? lines
    : [...lines, paint('bold', 'generated:'), ...trees.map(tree => treeLine(tree, options))]
}

const MOST_COMMITS = 100

/** Names are escaped already. */
export function commitLines(
  commits: readonly string[],
  { paint, name }: Pick<ListOptions, 'paint' | 'name'>,
  title = 'commits, which come when everything is accepted:',
): string[] {
  if (commits.length === 0) return []
  const more = commits.length - MOST_COMMITS
  return [
    paint('bold', title),
    ...commits.slice(0, MOST_COMMITS).map(line => `  ${line}`),
    ...(more > 0 ? [withName(`  … and ${more} more: pen git status`, name)] : []),
  ]
}

export function changeLine(change: Change, renamedFrom: string | undefined, paint: Paint): string {
  const { kind, path, before, after } = change
  const [sign, colour] = SIGNS[kind]
  const why = change.refused ?? change.conflict ?? change.protected ?? change.attention
  const name = renamedFrom === undefined ? showPath(path) : `${showPath(renamedFrom)} → ${showPath(path)}`
  const isDirectory = (after ?? before)?.type === 'directory'
  const details = [detailsOf(kind, before, after), ...(why === undefined ? [] : [why])].filter(
    text => text !== '',
  )
  const text = `${renamedFrom === undefined ? sign : '>'} ${name}${isDirectory ? '/' : ''}`
  return `  ${paint(colour, text)}${details.length === 0 ? '' : `  (${details.join('; ')})`}`
}

export function detailsOf(kind: Change['kind'], before: Entry | undefined, after: Entry | undefined): string {
  const parts: string[] = []
  if (kind === 'type') parts.push(`${before?.type} → ${after?.type}`)
  if (after?.type === 'link') parts.push(`to ${printable(pathText(after.content ?? ''), LONGEST)}`)
  if (kind === 'changed' && before?.type === 'file')
    parts.push(`${showSize(before.size)} → ${showSize(after?.size ?? 0)}`)
  if (kind === 'added' && after?.type === 'file') parts.push(showSize(after.size))
  const isSame = before === undefined || after === undefined || before.type !== after.type
  if (!isSame && before.mode !== after.mode) parts.push(`mode ${octal(before)} → ${octal(after)}`)
  else if (kind === 'added' && after?.type === 'file' && (after.mode & 0o111) !== 0) parts.push('executable')
  return parts.join(', ')
}

const octal = ({ mode }: Entry): string => mode.toString(8).padStart(3, '0')

export function treeLine({ path, changes }: GeneratedTree, { name }: Pick<ListOptions, 'name'>): string {
  const bytes = changes.reduce((sum, { after }) => sum + (after?.size ?? 0), 0)
  const word = shellWord(pathText(path))
  const open = word === undefined ? '' : withName(`: pen diff ${word}`, name)
  return `  ${showPath(path)}/  ${counted(changes)}, ${showSize(bytes)}${open}`
}

export const KIND_NAMES: Readonly<Record<Change['kind'], string>> = {
  added: 'added',
  changed: 'changed',
  deleted: 'deleted',
  mode: 'with another mode',
  type: 'of another type',
}

/** `3 added, 1 deleted`. */
export function counted(changes: readonly Change[]): string {
  const counts = countKinds(changes)
  return (Object.keys(KIND_NAMES) as Change['kind'][])
    .flatMap(kind => (counts.has(kind) ? [`${counts.get(kind)} ${KIND_NAMES[kind]}`] : []))
    .join(', ')
}

const MOST_LEFT = 50

export function leftLines(
  left: readonly Left[],
  { paint, name }: Pick<ListOptions, 'paint' | 'name'>,
): string[] {
  const shown = left
    .slice(0, MOST_LEFT)
    .map(({ path, why }) => `  ${paint('yellow', showPath(path))}: ${why}`)
  if (left.length > MOST_LEFT) shown.push(withName(`  … and ${left.length - MOST_LEFT} more: pen diff`, name))
  return shown
}
