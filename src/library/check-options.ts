/**
 * Checks options at run time. Plain JavaScript has no compiler, and a misspelt `offline` that is ignored would leave the network
 * open.
 */
import { nearest } from '../base/nearest.ts'
import { SandboxError } from './sandbox-error.ts'

type Kind = keyof typeof KINDS

/** The kind of every option. The compiler requires all keys. */
export type Shape<T> = { readonly [K in keyof Required<T>]: Kind }

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const KINDS = {
  text: ['a string', (value: unknown) => typeof value === 'string'],
  number: ['a number', (value: unknown) => typeof value === 'number' && !Number.isNaN(value)],
  boolean: ['true or false', (value: unknown) => typeof value === 'boolean'],
  function: ['a function', (value: unknown) => typeof value === 'function'],
  object: ['an object', isObject],
  // By its shape: a framework may have its own class.
  signal: [
    'an AbortSignal',
    (value: unknown) =>
      isObject(value) &&
      typeof (value as AbortSignal).aborted === 'boolean' &&
      typeof (value as AbortSignal).addEventListener === 'function',
  ],
  bytes: [
    'a string or a Uint8Array',
    (value: unknown) => typeof value === 'string' || value instanceof Uint8Array,
  ],
  time: ['a number or a string', (value: unknown) => ['number', 'string'].includes(typeof value)],
  command: [
    'a string or an array of strings',
    (value: unknown) =>
      typeof value === 'string' || (Array.isArray(value) && value.every(word => typeof word === 'string')),
  ],
} as const satisfies Record<string, readonly [string, (value: unknown) => boolean]>

/** `call` names the call in errors, as `box.exec()`. An undefined option counts as absent. @internal */
export function checkOptions<T extends object>(call: string, options: T, shape: Shape<T>): T {
  if (!isObject(options)) throw usage(`the options of ${call} are ${nameOf(options)}, not an object`)
  for (const [key, value] of Object.entries(options)) {
    const kind = Object.hasOwn(shape, key) ? (shape as Record<string, Kind>)[key] : undefined
    if (kind === undefined) throw unknownKey(`${call} has no option`, key, Object.keys(shape))
    if (value !== undefined) checkValue(call, `the option ${key}`, value, kind)
  }
  return options
}

/** @internal */
export function checkValue(call: string, name: string, value: unknown, kind: Kind): void {
  const [expected, matches] = KINDS[kind]
  if (!matches(value)) throw usage(`${name} of ${call} is ${nameOf(value)}`, `expected ${expected}`)
}

/** @internal */
export function unknownKey(what: string, key: string, known: readonly string[]): SandboxError {
  const meant = nearest(key, known)
  const hint = meant === undefined ? `one of: ${known.join(', ')}` : `did you mean "${meant}"?`
  return usage(`${what} "${key}"`, hint)
}

/** @internal */
export const usage = (what: string, hint?: string): SandboxError => new SandboxError('USAGE', { what, hint })

function nameOf(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return `the number ${value}`
  if (typeof value === 'string') return `the string ${JSON.stringify(value.slice(0, 40))}`
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'function' ? 'a function' : `a ${typeof value}`
}
