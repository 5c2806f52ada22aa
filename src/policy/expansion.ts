/** Lists what an untrusted layer added with the user's permission, one grant at a time, for display. */
import { FIELDS } from './fields.ts'
import { denialDepth } from './files/decide-file.ts'
import { depth, isWithin } from './files/path.ts'
import type { Expansion } from './merge.ts'
import { type AllowRule, covers, overlapping } from './network/net-rule.ts'
import type { List, PathGrant, SettingKey, Settings } from './settings.ts'
import type { Setting, Source } from './source.ts'

const DENIALS: readonly SettingKey[] = ['files.deny', 'files.protect', 'network.deny']

/** Compares merged results, not documents, so a profile chosen by a layer is listed with all its grants. */
export function expansions(own: Settings, merged: Settings, untrusted: readonly string[]): Expansion[] {
  const out: Expansion[] = []
  const by = ({ layer }: Source) => (untrusted.includes(layer) ? layer : untrusted.join(', '))
  for (const key of Object.keys(merged) as SettingKey[]) {
    const now = merged[key]
    const before = own[key]
    if (now === undefined || DENIALS.includes(key)) continue
    if ('items' in now) {
      // Without a tools list every mounted program may run, so the first list only restricts.
      if (key === 'tools.allow' && before === undefined) continue
      const had = ((before as List<unknown> | undefined)?.items ?? []).map(item => item.rule)
      const texts = new Set(had.map(rule => JSON.stringify(rule)))
      const near = isNetGrant(key) ? overlapping(had as AllowRule[]) : () => had
      for (const { rule, source } of (now as List<unknown>).items) {
        const isFromUser = !untrusted.includes(source.layer) && texts.has(JSON.stringify(rule))
        if (!isFromUser && !near(rule as AllowRule).some(known => isGranted(key, known, rule, own)))
          out.push({ key, layer: by(source), item: rule })
      }
    } else if ('value' in now) {
      if (!isTighter(key, before as Setting<unknown> | undefined, now))
        out.push({ key, layer: by(now.source), item: now.value })
    } else {
      const had = before as Settings['env']
      for (const [name, setting] of now)
        if (had?.get(name) !== setting) out.push({ key, layer: by(setting.source), item: name })
    }
  }
  return out
}

/**
 * Caps the specificity of an untrusted layer's grants. Otherwise such a layer could bypass a denial or a protected place
 * by granting a deeper path inside it.
 */
export function beneathDenials(added: Settings, denials: Settings, workspace: string): Settings {
  const capped = ({ path, rank }: PathGrant): PathGrant => {
    const depths = [
      ...(denials['files.deny']?.items ?? []).map(({ rule }) => denialDepth(rule, path, workspace)),
      ...(denials['files.protect']?.items ?? []).map(({ rule }) =>
        isWithin(path, rule.path) ? depth(rule.path) : -1,
      ),
    ]
    return { path, rank: Math.min(rank, ...depths.filter(at => at >= 0)) }
  }
  const cap = (list: List<PathGrant>): List<PathGrant> => ({
    ...list,
    items: list.items.map(({ rule, source }) => ({ rule: capped(rule), source })),
  })
  const { 'files.read': read, 'files.write': write } = added
  return {
    ...added,
    ...(read === undefined ? {} : { 'files.read': cap(read) }),
    ...(write === undefined ? {} : { 'files.write': cap(write) }),
  }
}

const isNetGrant = (key: SettingKey): boolean => key === 'network.http' || key === 'network.tcp'

function isTighter(key: SettingKey, before: Setting<unknown> | undefined, now: Setting<unknown>): boolean {
  if (before === undefined) return false
  if (before.value === now.value) return true
  const { narrow } = FIELDS[key] as { narrow(granted: unknown, limit: unknown): unknown }
  return narrow(before, now) === now
}

function isGranted(key: SettingKey, before: unknown, now: unknown, own: Settings): boolean {
  if (key === 'files.read' || key === 'files.write') {
    const { path } = now as PathGrant
    const grant = before as PathGrant
    // The user made this place read-only inside a writable tree. Writing to it, or to a tree around it, is an addition.
    const isReadOnly = (own['files.read']?.items ?? []).some(
      ({ rule }) => rule.rank > grant.rank && (isWithin(path, rule.path) || isWithin(rule.path, path)),
    )
    return isWithin(path, grant.path) && !(key === 'files.write' && isReadOnly)
  }
  if (isNetGrant(key)) return covers(before as AllowRule, now as AllowRule)
  return JSON.stringify(before) === JSON.stringify(now)
}
