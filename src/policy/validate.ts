/** Validates a document against the schema. Reports the first error with its place, its reason and a fix. */
import * as v from 'valibot'
import { PenError, type Place } from '../base/error.ts'
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { type ConfigDocument, configSchema, SCHEMA, type SchemaPart, schemaBelow } from './schema.ts'

export type DocumentPath = readonly (string | number)[]

/** A parsed document that knows the place of each of its parts. */
export interface PositionedDocument {
  readonly value: unknown
  /** Undefined for text outside a file, such as flags. */
  placeOf(path: DocumentPath): Place | undefined
  keyPlaceOf(path: DocumentPath): Place | undefined
}

export function validateDocument(document: PositionedDocument, name: string): ConfigDocument {
  refuseMisplacedList(SCHEMA, document.value, [], document, name)
  const result = v.safeParse(configSchema, document.value)
  if (result.success) return result.output
  const [first] = result.issues
  throw asError(meantBy(first, pathOf(first)), document, name)
}

interface Fault {
  readonly issue: v.BaseIssue<unknown>
  readonly path: DocumentPath
}

/** The validator accepts a list in place of an object with optional keys. Refuse it here. */
function refuseMisplacedList(
  schema: SchemaPart,
  value: unknown,
  path: DocumentPath,
  document: PositionedDocument,
  name: string,
): void {
  const { entries, type } = schema
  const wantsObject = entries !== undefined || type === 'record'
  if (wantsObject && Array.isArray(value))
    throw new PenError('CONFIG_VALUE', {
      what: `${path.length === 0 ? 'the document' : showPath(path)} must be an object, not a list`,
      at: document.placeOf(path) ?? name,
      hint: 'write it as { "key": … }; the keys are listed in docs/reference/config.md',
    })
  if (entries === undefined || typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    const below = schemaBelow(schema, key)
    if (below !== undefined) refuseMisplacedList(below, inner, [...path, key], document, name)
  }
}

const pathOf = (issue: v.BaseIssue<unknown>): DocumentPath =>
  (issue.path ?? []).map(item => item.key as string | number)

/** Of several possible shapes, picks the one whose keys the value has, and reports the error of that shape. */
function meantBy(issue: v.BaseIssue<unknown>, path: DocumentPath): Fault {
  const { input } = issue
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
  if (issue.type !== 'union' || !isObject) return { issue, path }
  // The first key of a shape identifies it.
  const shared = ({ entries = {} }: SchemaPart) =>
    Object.keys(entries).reduce((n, key, i) => n + (key in input ? (i === 0 ? 100 : 1) : 0), 0)
  const [best] = (schemaAt(path)?.options ?? [])
    .filter(({ entries }) => entries !== undefined)
    .sort((a, b) => shared(b) - shared(a))
  const inner = best && v.safeParse(best as unknown as v.GenericSchema, input).issues?.[0]
  return inner === undefined ? { issue, path } : { issue: inner, path: [...path, ...pathOf(inner)] }
}

function asError({ issue, path }: Fault, document: PositionedDocument, name: string): PenError {
  const key = showPath(path)
  const last = String(path.at(-1))
  const parent = path.slice(0, -1)
  if (issue.expected === 'never') {
    const meant = nearest(last, keysAt(parent))
    return new PenError('CONFIG_VALUE', {
      what: `unknown key "${printable(last, 80)}"${parent.length > 0 ? ` in ${showPath(parent)}` : ''}`,
      at: document.keyPlaceOf(path) ?? name,
      hint:
        meant === undefined
          ? `delete it; the keys here are ${[...new Set(keysAt(parent))].join(', ')}`
          : `did you mean "${meant}"?`,
    })
  }
  if (issue.received === 'undefined')
    return new PenError('CONFIG_VALUE', {
      what: `${key} is missing`,
      at: document.placeOf(parent) ?? name,
      hint: `add "${last}": …; see docs/reference/config.md`,
    })
  return new PenError('CONFIG_VALUE', {
    what: `${key === '' ? 'the document' : key} must be ${expectation(issue.expected)}, not ${received(issue, path)}`,
    at: document.placeOf(path) ?? name,
    hint: wordHint(issue) ?? 'see docs/reference/config.md',
  })
}

/** Settings in which people put passwords. Messages never repeat their values. */
export const mayHoldSecret = ([first, second]: DocumentPath): boolean =>
  first === 'env' ||
  (first === 'network' && second === 'upstreamProxy') ||
  (first === 'image' && second === 'args')

const showPath = (path: DocumentPath): string =>
  path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : `${i === 0 ? '' : '.'}${printable(key, 80)}`))
    .join('')

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text in quotes',
  number: 'a number',
  boolean: 'true or false',
  Array: 'a list',
  Object: 'an object',
  null: 'null',
}

const expectation = (expected: string | null): string =>
  (expected ?? 'something else')
    .replace(/^\((.*)\)$/, '$1')
    .split(' | ')
    .map(word => KINDS[word] ?? word)
    .join(' or ')

/** Repeats a short value, so that its author finds it. Describes any other value by its kind. */
function received({ input }: v.BaseIssue<unknown>, path: DocumentPath): string {
  const kind = input === null ? 'null' : Array.isArray(input) ? 'Array' : typeof input
  if (kind === 'object') return 'an object'
  if (kind === 'Array' || kind === 'null' || mayHoldSecret(path)) return KINDS[kind] ?? kind
  return printable(JSON.stringify(input), 80)
}

function wordHint(issue: v.BaseIssue<unknown>): string | undefined {
  if (typeof issue.input !== 'string' || issue.expected === null) return undefined
  const words = [...issue.expected.matchAll(/"([^"]*)"/g)].map(match => match[1] ?? '')
  const meant = nearest(issue.input, words)
  return meant === undefined ? undefined : `did you mean "${meant}"?`
}

/** The keys that the schema has at a path, for "did you mean". */
function keysAt(path: DocumentPath): string[] {
  const found = schemaAt(path)
  const shapes = [found?.entries, ...(found?.options ?? []).map(({ entries }) => entries)]
  return shapes.flatMap(entries => Object.keys(entries ?? {}))
}

const schemaAt = (path: DocumentPath): SchemaPart | undefined =>
  path.reduce<SchemaPart | undefined>((schema, key) => schema && schemaBelow(schema, key), SCHEMA)
