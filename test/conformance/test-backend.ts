/** A backend for the claims: how it is started, and what is particular about it. */
import { join } from 'node:path'
import type { Who } from './launcher.ts'

export const PEN = process.env['PEN_UNDER_TEST'] ?? join(import.meta.dir, '../../dist/pen')

/**
 * What is true of one backend but not of another, and not a promise. A claim that needs it names it; elsewhere
 * the reason is printed instead. Everything else is expected of every backend.
 */
export const TRAITS = {
  bubblewrap: 'bubblewrap, its guard and the order in which they start are the process backend’s',
  callersMounts: 'a daemon sees the mounts of the host, not those of its client: another tree is refused',
  hostKernel:
    'a guest’s own kernel has its namespaces, and holds its limits unreported (limits-silent): see test/vm',
  laterMounts:
    'podman without root keeps a mount namespace: what root mounts later is there only where mounts are shared',
  mixedTerminal: 'a command in a container has a terminal for all of its streams, or for none',
  ownCgroups: 'an engine makes the cgroups itself, and does not start without',
  ownUserNamespace: 'a container of root’s engine has the host’s user namespace',
} as const

export type Trait = keyof typeof TRAITS

/** The flags that select a backend. */
export interface TestBackend {
  /** With its user: `podman, as root`. */
  readonly name: string
  readonly who: Who
  readonly backend: 'process' | 'podman' | 'docker' | 'vm'
  readonly isolation: 'process' | 'container' | 'vm'
  readonly flags: readonly string[]
  /** So that pen finds the test's own engine. */
  readonly env: Readonly<Record<string, string>>
  /** The properties that only some backends have, and this one has. */
  readonly traits: ReadonlySet<Trait>
  /** Why it cannot be tested here, or undefined. */
  readonly missing: string | undefined
}

/** For boxes where pen itself chooses the backend. */
export const ANY_BACKEND: Omit<TestBackend, 'name' | 'who'> = {
  backend: 'process',
  isolation: 'process',
  flags: ['--offline'],
  env: {},
  traits: new Set(),
  missing: undefined,
}
