/** A config key as people type it: `limits.memory`, `env.NAME`. The schema says which keys exist and what they take. */
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { SCHEMA, type SchemaPart, schemaBelow } from './schema.ts'
import { type Parsed, type Refusal, refuse } from './source.ts'

export interface ConfigKey {
  readonly path: readonly string[]
  /** `json` is for objects, and for values with more than one form. */
  readonly takes: 'text' | 'number' | 'boolean' | 'texts' | 'json'
}

export function parseConfigKey(text: string): Parsed<ConfigKey> {
  let at = SCHEMA
  const path: string[] = []
  for (const name of text.split('.')) {
    const next = name === '' ? undefined : schemaBelow(at, name)
    if (next === undefined) return unknownKey(text, path, name, Object.keys(at.entries ?? {}))
    path.push(name)
    at = next
  }
  return { ok: true, value: { path, takes: takenBy(at) } }
}

function takenBy(schema: SchemaPart): ConfigKey['takes'] {
  switch (schema.type) {
    case 'string':
    case 'picklist':
      return 'text'
    case 'number':
    case 'boolean':
      return schema.type
    case 'array':
      return isText(schema.item) || schema.item?.options?.some(isText) ? 'texts' : 'json'
    default:
      return 'json'
  }
}

const isText = (schema: SchemaPart | undefined): boolean => schema?.type === 'string'

/** `path` has the keys `names`, and `name` is none of them. */
function unknownKey(text: string, path: readonly string[], name: string, names: readonly string[]): Refusal {
  const why = `the config has no key "${printable(text, 80)}"`
  const parent = path.join('.')
  const meant = nearest(name, names)
  if (meant !== undefined) return refuse(why, `did you mean ${[...path, meant].join('.')}?`)
  if (names.length === 0) return refuse(why, `${parent} has no keys of its own`)
  return refuse(why, `${parent === '' ? 'its keys are' : `${parent} has`} ${names.join(', ')}`)
}
