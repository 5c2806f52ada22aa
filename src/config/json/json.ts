/**
 * Strict JSON with positions: the only reader of configuration. The document may be hostile. Everything that two readers could
 * interpret differently is refused: duplicate keys, unusual numbers, hidden characters.
 */
import { PenError, type Place } from '../../base/error.ts'
import { type JsonNode, parseJson } from './parser.ts'
import { decodeText } from './source-text.ts'

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

/** Has no prototype, so a key that the file does not contain is never found. */
export interface JsonObject {
  readonly [key: string]: JsonValue
}

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export type JsonPath = readonly (string | number)[]

export interface JsonDocument {
  readonly value: JsonValue
  /** The start of the value at a path. For an absent path, the start of its nearest ancestor. */
  placeOf(path: JsonPath): Place
  /** The start of the last key in the path. For an array item, the start of its value. */
  keyPlaceOf(path: JsonPath): Place
}

/** Takes linear time in the size of the input. Throws `CONFIG_SYNTAX` with the place and the fix. */
export function readJson(bytes: Uint8Array, file: string, maxBytes?: number): JsonDocument {
  const source = decodeText(bytes, file, maxBytes)
  const root = parseJson(source)
  return {
    value: root.value,
    placeOf: path => source.placeAt(nearestNode(root, path).at),
    keyPlaceOf: path => source.placeAt(nearestNode(root, path).keyAt),
  }
}

function nearestNode(root: JsonNode, path: JsonPath): JsonNode {
  let node = root
  for (const step of path) {
    const next = node.parts?.get(step)
    if (next === undefined) break
    node = next
  }
  return node
}

/**
 * Indents like the file that it replaces, else with two spaces. Refuses a value that `readJson` would not read back as the
 * same value, so pen never writes a file that it cannot read.
 */
export function printJson(
  value: JsonValue,
  { like, maxBytes }: { readonly like?: Uint8Array | undefined; readonly maxBytes?: number } = {},
): string {
  const refuse = (why: string, hint: string, cause?: unknown) =>
    new PenError('CONFIG_VALUE', { what: `this cannot be written as configuration: ${why}`, hint, cause })
  const known = (_key: string, part: unknown): unknown => {
    if (part === undefined || Object.is(part, -0) || (typeof part === 'number' && !Number.isFinite(part)))
      throw refuse(`${Object.is(part, -0) ? '-0' : String(part)} is not a JSON value`, 'use another value')
    return part
  }
  const text = `${JSON.stringify(value, known, indentOf(like))}\n`
  try {
    readJson(new TextEncoder().encode(text), 'output', maxBytes)
  } catch (error) {
    throw error instanceof PenError ? refuse(error.message, error.hint ?? '', error) : error
  }
  return text
}

/** The first indentation in the file is its author's indent. */
function indentOf(like: Uint8Array | undefined): string {
  return (like && /\n([ \t]{1,8})\S/.exec(new TextDecoder().decode(like))?.[1]) ?? '  '
}
