import { expect, test } from 'bun:test'
import { AVAILABLE_BACKENDS, AVAILABLE_ISOLATIONS } from '../backend/probe.ts'
import { type ConfigDocument, configSchema } from '../policy/schema.ts'
import type { BackendName, PolicyDocument } from './policy-document.ts'

type Frozen<T> = T extends readonly (infer E)[]
  ? readonly Frozen<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T

/** What the parser accepts. Backend and isolation are compared by name below. */
type Parsed = Omit<Frozen<ConfigDocument>, '$schema' | 'backend' | 'isolation'>
type Chosen = Pick<PolicyDocument, 'backend' | 'isolation'>

/** Both compile only while the two types are the same. */
const asParsed = (document: PolicyDocument): Parsed & Chosen => document
const asWritten = (document: Parsed & Chosen): PolicyDocument => document

test('PolicyDocument has exactly the keys of a config document', () => {
  const document: Required<PolicyDocument> = {
    version: 1,
    profile: 'coding',
    isolation: 'auto',
    backend: 'process',
    workspace: 'review',
    files: {},
    network: { upstreamProxy: null },
    exec: {},
    limits: {},
    env: { A: 'text', B: { from: 'host' } },
    mounts: [
      { host: '~/x', at: '/x', mode: 'rw' },
      { volume: 'v', at: '/v' },
    ],
    image: { dockerfile: 'Dockerfile', args: { A: 'b' } },
    tools: {},
    git: {},
    vm: {},
    user: 'host',
    runtime: 'runc',
    ssh: { agent: { keys: [], hosts: ['github.com:22'], sign: ['git'] } },
    secrets: [{ name: 'A', from: { env: 'A' }, to: ['example.com'], in: ['header:x-api-key'] }],
    acceptGaps: [],
    ports: [{ guest: 3000, host: 3000 }],
  }
  const known = Object.keys(configSchema.entries).filter(key => key !== '$schema')
  expect(new Set(Object.keys(asWritten(asParsed(document))))).toEqual(new Set(known))
})

test('PolicyDocument offers exactly the available backends', () => {
  const offered: readonly BackendName[] = ['process', 'podman', 'docker', 'soft', 'vm']
  expect(new Set(AVAILABLE_BACKENDS)).toEqual(new Set(offered))
  expect(AVAILABLE_ISOLATIONS).toContain('vm')
  // @ts-expect-error this version of pen has no such backend
  const none: BackendName = 'kubernetes'
  expect(AVAILABLE_BACKENDS).not.toContain(none)
})
