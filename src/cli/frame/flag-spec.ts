import type { Bytes, Millis } from '../../base/quantity.ts'

/** The declaration of a flag. The parser, the help text and the type of its value follow from it. */
export type FlagSpec =
  /** `short`: one letter, for flags that other tools made common. */
  | { readonly kind: 'boolean'; readonly about: string; readonly short?: string }
  | { readonly kind: 'string'; readonly value: string; readonly about: string }
  /** `known`: all valid values. */
  | {
      readonly kind: 'list'
      readonly value: string
      readonly about: string
      readonly known?: readonly string[]
    }
  | { readonly kind: 'choice'; readonly choices: readonly string[]; readonly about: string }
  | { readonly kind: 'count'; readonly value: string; readonly about: string }
  | { readonly kind: 'duration'; readonly value: string; readonly about: string }
  | { readonly kind: 'bytes'; readonly value: string; readonly about: string }

/** Keys are flag names without dashes. Shared sets are spread: `{ ...policyFlags, ...debugFlag }`. */
export type FlagSpecs = Readonly<Record<string, FlagSpec>>

type FlagValue<S extends FlagSpec> = S extends { kind: 'boolean' }
  ? boolean
  : S extends { kind: 'list' }
    ? readonly string[]
    : S extends { kind: 'choice'; choices: readonly (infer C)[] }
      ? C | undefined
      : S extends { kind: 'count' }
        ? number | undefined
        : S extends { kind: 'duration' }
          ? Millis | undefined
          : S extends { kind: 'bytes' }
            ? Bytes | undefined
            : string | undefined

/** What `run` receives: false, [] or undefined if the flag was not given. */
export type FlagValues<F extends FlagSpecs> = { readonly [K in keyof F]: FlagValue<F[K]> }

/** Keeps the literal types of a shared set of flags, so that its values stay typed when it is spread. */
export const defineFlags = <const F extends FlagSpecs>(flags: F): F => flags

export const jsonFlag = defineFlags({
  json: { kind: 'boolean', about: 'print JSON, including errors' },
})

/** For verbs that start a sandbox or enter one. `dispatch` acts on it before the verb starts. */
export const debugFlag = defineFlags({
  debug: { kind: 'boolean', about: 'print the phases of the run and their times' },
})

/** An argument that is not a flag. */
interface PositionalSpec {
  readonly about: string
  /** Order: required ones, then `optional` ones, then `many`. */
  readonly arity: 'one' | 'optional' | 'many'
}

export type PositionalSpecs = Readonly<Record<string, PositionalSpec>>

type PositionalValue<S extends PositionalSpec> = S['arity'] extends 'one'
  ? string
  : S['arity'] extends 'optional'
    ? string | undefined
    : readonly string[]

export type PositionalValues<P extends PositionalSpecs> = { readonly [K in keyof P]: PositionalValue<P[K]> }
