/** A config key as people type it: `limits.memory`, `env.NAME`. The schema says which keys exist and what they take. */
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { configSchema } from './schema.ts'
import type { Parsed } from './source.ts'

export interface ConfigKey {
  readonly path: readonly string[]
  /** `json` is for objects, and for values with more than one form. */
  readonly takes: 'text' | 'number' | 'boolean' | 'texts' | 'json'
}

interface Schema {
  readonly type: string
  readonly entries?: Readonly<Record<string, Schema>>
  readonly wrapped?: Schema
  readonly value?: Schema
  readonly item?: Schema
}

const ROOT = configSchema as unknown as Schema

export function parseConfigKey(text: string): Parsed<ConfigKey> {
  let at = ROOT
  const path: string[] = []
  for (const name of text.split('.')) {
    const { entries, type, value } = at
    const next =
      entries === undefined
        ? type === 'record' && name !== ''
          ? value
          : undefined
        : Object.hasOwn(entries, name)
          ? entries[name]
          : undefined
    if (next === undefined) return refuse(text, path, name, entries)
    path.push(name)
    at = unwrap(next)
  }
  return { ok: true, value: { path, takes: takenBy(at) } }
}

function unwrap(schema: Schema): Schema {
  return schema.wrapped === undefined || schema.type === 'nullable' ? schema : unwrap(schema.wrapped)
}

function takenBy(schema: Schema): ConfigKey['takes'] {
  switch (schema.type) {
    case 'string':
    case 'picklist':
      return 'text'
    case 'number':
    case 'boolean':
      return schema.type
    case 'array':
      return schema.item?.type === 'string' ? 'texts' : 'json'
    default:
      return 'json'
  }
}

function refuse(
  text: string,
  path: readonly string[],
  name: string,
  entries: Schema['entries'],
): Parsed<ConfigKey> {
  const before = path.map(part => `${part}.`).join('')
  const names = Object.keys(entries ?? {})
  const meant = nearest(name, names)
  return {
    ok: false,
    why: `the config has no key "${printable(text, 80)}"`,
    fix:
      meant !== undefined
        ? `did you mean ${before}${meant}?`
        : names.length === 0
          ? `${path.join('.')} has no keys of its own`
          : `${path.length === 0 ? 'its keys are' : `${path.join('.')} has`} ${names.join(', ')}`,
  }
}
