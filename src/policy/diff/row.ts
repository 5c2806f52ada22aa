import type { Policy } from '../policy.ts'
import type { SettingKey } from '../settings.ts'
import type { Source } from '../source.ts'

export interface Difference {
  readonly key: SettingKey
  readonly change: 'added' | 'removed' | 'changed'
  /** The rule or the new value as text. It may come from a hostile file: escape it before display. */
  readonly item: string
  /** The previous value, if there was one and it cannot be a secret. */
  readonly was: string | undefined
  readonly widens: boolean
  /** The layer that set the new value. */
  readonly source: Source | undefined
}

/** The difference of a single value; empty when it did not change. */
export function changed(
  key: SettingKey,
  [was, item]: readonly [string, string],
  widens: boolean,
  after: Policy,
): Difference[] {
  if (was === item) return []
  return [{ key, change: 'changed', item, was, widens, source: after.sources.get(key) }]
}

/** Compares a list in which every entry is a separate grant. */
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
