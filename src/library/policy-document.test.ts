import { expect, test } from 'bun:test'
import { type ConfigDocument, configSchema } from '../policy/schema.ts'
import type { PolicyDocument } from './policy-document.ts'

type Frozen<T> = T extends readonly (infer E)[]
  ? readonly Frozen<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T

/** Compiles only while what a program may write is what the parser takes. */
const asConfig = (document: PolicyDocument): Frozen<ConfigDocument> => document

test('a policy that a program writes is a config document', () => {
  const document: Required<PolicyDocument> = {
    version: 1,
    profile: 'coding',
    isolation: 'auto',
    backend: 'process',
    files: {},
    network: {},
    exec: {},
    limits: {},
    env: {},
    tools: {},
    acceptGaps: [],
  }
  expect(Object.keys(asConfig(document)).filter(key => !Object.hasOwn(configSchema.entries, key))).toEqual([])
})
