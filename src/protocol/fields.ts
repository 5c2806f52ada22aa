/**
 * Checks for the values of a message. Each throws on an invalid value. The stream is then closed, and nothing of the
 * message was done.
 */
import { protocolError } from './frame.ts'

export type Check<T> = (value: unknown) => T

/** What a check returns. */
export type Checked<C> = C extends Check<infer T> ? T : never

type Checks<T> = { readonly [K in keyof T]: Check<T[K]> }

/** An object with exactly these fields. */
export const object =
  <T extends object>(fields: Checks<T>): Check<Readonly<T>> =>
  value => {
    const given = record(value)
    const wanted = Object.entries<Check<unknown>>(fields)
    if (Object.keys(given).length !== wanted.length || !wanted.every(([key]) => Object.hasOwn(given, key)))
      throw protocolError('unexpected fields')
    return Object.fromEntries(wanted.map(([key, check]) => [key, check(given[key])])) as T
  }

type Operation<S> = { [K in keyof S]: Readonly<{ op: K } & { [F in keyof S[K]]: Checked<S[K][F]> }> }[keyof S]

/** One of several objects. The word in `op` says which fields it has besides. */
export const operation =
  <S extends Readonly<Record<string, Readonly<Record<string, Check<unknown>>>>>>(
    shapes: S,
  ): Check<Operation<S>> =>
  value => {
    const op = oneOf(...Object.keys(shapes))(record(value)['op'])
    return object({ op: () => op, ...shapes[op] })(value) as Operation<S>
  }

function record(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw protocolError('no object')
  return value as Record<string, unknown>
}

export const list =
  <T>(one: Check<T>, most = 4096): Check<readonly T[]> =>
  value => {
    if (!Array.isArray(value) || value.length > most)
      throw protocolError('a list that is invalid or too long')
    return value.map(item => one(item))
  }

export const pair =
  <A, B>(first: Check<A>, second: Check<B>): Check<readonly [A, B]> =>
  value => {
    if (!Array.isArray(value) || value.length !== 2) throw protocolError('an invalid pair')
    return [first(value[0]), second(value[1])]
  }

export const text =
  (longest: number): Check<string> =>
  value => {
    if (typeof value !== 'string' || value.length > longest) throw protocolError('an invalid word')
    return value
  }

/** Text for the kernel. A NUL would end it. */
export const word: Check<string> = value => {
  if (typeof value !== 'string' || value.includes('\0')) throw protocolError('an invalid word')
  return value
}

export const truth: Check<boolean> = value => {
  if (typeof value !== 'boolean') throw protocolError('an invalid boolean')
  return value
}

export const oneOf =
  <const T extends string>(...words: readonly T[]): Check<T> =>
  value => {
    const found = words.find(word => word === value)
    if (found === undefined) throw protocolError('an unknown word')
    return found
  }

export const between =
  (least: number, most: number): Check<number> =>
  value => {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
      throw protocolError('a number out of bounds')
    return value
  }

export const whole: Check<number> = between(0, Number.MAX_SAFE_INTEGER)

export const orNull =
  <T>(check: Check<T>): Check<T | null> =>
  value =>
    value === null ? null : check(value)

/** In a message, null stands for undefined. */
export const optional =
  <T>(check: Check<T>): Check<T | undefined> =>
  value =>
    value === null ? undefined : check(value)

export const toText = <T>(value: T): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

export function fromText<T>(payload: Uint8Array, check: Check<T>): T {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload))
  } catch {
    throw protocolError('an invalid text')
  }
  return check(value)
}
