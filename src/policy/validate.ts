/** Checks a document against the schema; the first thing wrong is reported with its place, its reason and a cure. */
import * as v from 'valibot'
import { PenError, type Place } from '../base/error.ts'
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { type ConfigDocument, configSchema } from './schema.ts'

export type DocumentPath = readonly (string | number)[]

/** A parsed document that knows where each of its parts stands. */
export interface PositionedDocument {
  readonly value: unknown
  /** Undefined for words that stand in no file, such as flags. */
  placeOf(path: DocumentPath): Place | undefined
  keyPlaceOf(path: DocumentPath): Place | undefined
}

export function validateDocument(document: PositionedDocument, name: string): ConfigDocument {
  refuseMisplacedList(configSchema, document.value, [], document, name)
  const result = v.safeParse(configSchema, document.value)
  if (result.success) return result.output
  throw asError(deepest(result.issues), document, name)
}

/** The validator takes a list for an object with optional keys; a person who wrote one meant something else. */
function refuseMisplacedList(
  schema: unknown,
  value: unknown,
  path: DocumentPath,
  document: PositionedDocument,
  name: string,
): void {
  const { entries, type } = unwrap(schema) as { entries?: Record<string, unknown>; type?: string }
  const wantsObject = entries !== undefined || type === 'record'
  if (wantsObject && Array.isArray(value))
    throw new PenError('CONFIG_VALUE', {
      what: `${path.length === 0 ? 'the document' : showPath(path)} must be an object, not a list`,
      at: document.placeOf(path) ?? name,
      hint: 'write it as { "key": … }; the keys are listed in docs/reference/config.md',
    })
  if (entries === undefined || typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value))
    if (Object.hasOwn(entries, key)) refuseMisplacedList(entries[key], inner, [...path, key], document, name)
}

/** A union reports its branches inside itself: the branch that got furthest is the one the author meant. */
function deepest(issues: readonly v.BaseIssue<unknown>[]): v.BaseIssue<unknown> {
  const [first] = issues
  if (first === undefined) throw new PenError('INTERNAL', { what: 'the validator refused without a reason' })
  const inner = (first.issues ?? []).filter(issue => (issue.path?.length ?? 0) > (first.path?.length ?? 0))
  return inner.length === 0 ? first : deepest(inner)
}

function asError(issue: v.BaseIssue<unknown>, document: PositionedDocument, name: string): PenError {
  const path = (issue.path ?? []).map(item => item.key as string | number)
  const key = showPath(path)
  if (issue.expected === 'never') {
    const last = String(path.at(-1))
    const meant = nearest(last, keysAt(path.slice(0, -1)))
    return new PenError('CONFIG_VALUE', {
      what: `unknown key "${printable(last, 80)}"${path.length > 1 ? ` in ${showPath(path.slice(0, -1))}` : ''}`,
      at: document.keyPlaceOf(path) ?? name,
      hint:
        meant === undefined
          ? 'delete it; the keys are listed in docs/reference/config.md'
          : `did you mean "${meant}"?`,
    })
  }
  if (issue.received === 'undefined')
    return new PenError('CONFIG_VALUE', {
      what: `${key} is missing`,
      at: document.placeOf(path.slice(0, -1)) ?? name,
      hint: `give it ${expectation(issue.expected)}`,
    })
  return new PenError('CONFIG_VALUE', {
    what: `${key === '' ? 'the document' : key} must be ${expectation(issue.expected)}, not ${received(issue.received)}`,
    at: document.placeOf(path) ?? name,
    hint: wordHint(issue) ?? 'see docs/reference/config.md',
  })
}

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
  expected === null
    ? 'something else'
    : (KINDS[expected] ?? expected.replaceAll('(', '').replaceAll(')', '').replaceAll(' | ', ' or '))

const received = (text: string): string => KINDS[text] ?? printable(text, 80)

function wordHint(issue: v.BaseIssue<unknown>): string | undefined {
  if (typeof issue.input !== 'string' || issue.expected === null) return undefined
  const words = [...issue.expected.matchAll(/"([^"]*)"/g)].map(match => match[1] ?? '')
  const meant = nearest(issue.input, words)
  return meant === undefined ? undefined : `did you mean "${meant}"?`
}

/** The keys the schema knows at a place, for "did you mean". */
function keysAt(path: DocumentPath): string[] {
  let schema: unknown = configSchema
  for (const key of path) {
    const entries = (unwrap(schema) as { entries?: Record<string, unknown> }).entries
    schema = typeof key === 'string' ? entries?.[key] : (unwrap(schema) as { item?: unknown }).item
  }
  const found = unwrap(schema) as { entries?: Record<string, unknown>; options?: unknown[] }
  if (found.entries !== undefined) return Object.keys(found.entries)
  return (found.options ?? []).flatMap(option =>
    Object.keys((unwrap(option) as { entries?: object }).entries ?? {}),
  )
}

/** Looks through `optional` and `pipe` to the schema that carries the entries. */
function unwrap(schema: unknown): object {
  let at = schema
  while (typeof at === 'object' && at !== null && 'wrapped' in at) at = at.wrapped
  if (typeof at === 'object' && at !== null && 'pipe' in at && Array.isArray(at.pipe) && !('entries' in at))
    at = at.pipe[0]
  return typeof at === 'object' && at !== null ? at : {}
}
