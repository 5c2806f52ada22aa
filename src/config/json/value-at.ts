import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { ConfigKey } from '../../policy/config-key.ts'
import { isObject, type JsonObject, type JsonValue, readJson } from './json.ts'

/** The document's value at a key; undefined if it is not set. */
export function valueAt(document: JsonValue, path: readonly string[]): JsonValue | undefined {
  let at: JsonValue | undefined = document
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined
    at = at[name]
  }
  return at
}

/** The document with another value at a key, or without the key. Objects that become empty are removed. */
export function withValueAt(
  document: JsonObject,
  [name = '', ...rest]: readonly string[],
  value: JsonValue | undefined,
): JsonObject {
  const inner = document[name]
  const next = rest.length === 0 ? value : withValueAt(isObject(inner) ? inner : {}, rest, value)
  const isEmptied = rest.length > 0 && value === undefined && Object.keys(next ?? {}).length === 0
  if (next !== undefined && !isEmptied) return { ...document, [name]: next }
  const { [name]: _gone, ...others } = document
  return others
}

/** Parses words of the command line as a key's value. The whole document is validated when it is written. */
export function readWords(words: readonly string[], { path, takes }: ConfigKey): JsonValue {
  const [first = ''] = words
  if (takes === 'texts') return words.length === 1 && first.startsWith('[') ? json(first) : words
  if (words.length > 1)
    throw new PenError('USAGE', {
      what: `${path.join('.')} takes one value, not ${words.length}`,
      at: 'VALUE',
      hint: 'quote it if it has spaces in it',
    })
  if (takes === 'text') return first
  // A variable or proxy is a string unless it is written as JSON.
  if (takes === 'json' && !/^[[{"]|^null$/.test(first)) return first
  if (takes === 'boolean' && first !== 'true' && first !== 'false')
    throw new PenError('CONFIG_VALUE', {
      what: `${path.join('.')} is true or false, not "${printable(first, 80)}"`,
      at: 'VALUE',
      hint: 'write true or false',
    })
  return json(first)
}

const json = (text: string): JsonValue => readJson(Buffer.from(text), 'VALUE').value
