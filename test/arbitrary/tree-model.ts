/** A small model of mounting: what a sandbox could read and write after the steps of a plan, in order. */
import type { HostFacts } from '../../src/plan/facts.ts'
import type { Step } from '../../src/plan/plan.ts'
import { SYSTEM_PATH } from '../../src/plan/system-view.ts'
import { denialDepth, showDeny } from '../../src/policy/files/decide-file.ts'
import { depth, type GuestPath, type HostPath, isWithin } from '../../src/policy/files/path.ts'
import type { Policy } from '../../src/policy/policy.ts'

export interface Access {
  readonly read: boolean
  readonly write: boolean
}

/** The last step at or above a path decides: a later mount covers an earlier one. */
export function accessOf(steps: readonly Step[], path: string): Access {
  let access: Access = { read: false, write: false }
  for (const step of steps) {
    if (step.op === 'seal' || !isWithin(path, step.at)) continue
    if (step.op === 'bind') access = { read: true, write: step.mode === 'rw' }
    else access = { read: false, write: false }
  }
  return access
}

/** Host facts where every path of `existing` is a directory and there is no repository. */
export function factsFor(
  policy: Policy,
  existing: readonly string[],
  extra: Partial<HostFacts> = {},
): HostFacts {
  const isPlace = (rule: Parameters<typeof denialDepth>[0], path: string) =>
    denialDepth(rule, path, policy.workspace) === depth(path)
  return {
    system: [],
    located: new Map(existing.map(path => [path, { real: path, kind: 'directory' as const }])),
    denied: existing.flatMap(path =>
      policy.files.deny
        .filter(({ rule }) => isPlace(rule, path))
        .slice(0, 1)
        .map(({ rule }) => ({ path, kind: 'directory' as const, why: showDeny(rule) })),
    ),
    repository: {
      git: undefined,
      own: '/h/u/.pen/git/dir' as HostPath,
      emptyModules: [],
      protect: policy.files.protect.map(({ rule }) => rule).filter(({ path }) => existing.includes(path)),
      pins: [],
      watch: [],
      warnings: [],
    },
    env: new Map(),
    identity: { uid: 1000, gid: 1000 },
    unprivilegedUser: undefined,
    foldsNames: false,
    shell: '/bin/sh' as GuestPath,
    path: SYSTEM_PATH,
    toolchains: new Map(),
    volumes: '/h/u/.pen/volumes' as HostPath,
    tools: { directories: [], strays: [], found: [], missing: [], shells: [], setsid: undefined },
    ...extra,
  }
}
