import type { Policy } from '../policy.ts'
import type { SettingKey } from '../settings.ts'
import type { Source } from '../source.ts'

export interface Difference {
  readonly key: SettingKey
  readonly change: 'added' | 'removed' | 'changed'
  /** The rule or the new value as text. It may come from a hostile file: whoever shows it escapes it. */
  readonly item: string
  /** The value before, where there was one and it cannot be a secret. */
  readonly was: string | undefined
  readonly widens: boolean
  /** Who says so, for what is new. */
  readonly source: Source | undefined
}

/** A single value; nothing when it is the same. */
export function changed(
  key: SettingKey,
  [was, item]: readonly [string, string],
  widens: boolean,
  after: Policy,
): Difference[] {
  if (was === item) return []
  return [{ key, change: 'changed', item, was, widens, source: after.sources.get(key) }]
}

/** A list in which every entry is a grant of its own. */
export function compareNames(
  key: SettingKey,
  before: readonly string[],
  after: readonly string[],
): Difference[] {
  const had = new Set(before)
  const has = new Set(after)
  const entry = (change: 'added' | 'removed') => (item: string) => ({
    key,
    change,
    item,
    was: undefined,
    widens: change === 'added',
    source: undefined,
  })
  return [
    ...[...has].filter(item => !had.has(item)).map(entry('added')),
    ...[...had].filter(item => !has.has(item)).map(entry('removed')),
  ]
}
