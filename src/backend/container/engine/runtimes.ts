/**
 * Chooses the OCI runtime: the policy's, or the engine's default, or the first that works. Some runtimes refuse a
 * machine (its cgroup layout, its kernel) that others accept. pen finds out by trying, and caches the result.
 */

import { recall, remember } from '../../../base/fact-cache.ts'
import { findTool } from '../../../base/find-tool.ts'
import type { Captured } from '../../../base/spawn.ts'
import { type EngineName, reasonOf } from './engine.ts'
import type { EngineFacts } from './engine-facts.ts'
import { GVISOR_RUNTIME } from './gvisor.ts'

const OTHERS = ['crun', 'runc'] as const

export interface RuntimeChoice {
  /** In the order of attempts. Undefined is the engine's default. */
  readonly candidates: readonly (string | undefined)[]
  worked(runtime: string | undefined): void
}

export function chooseRuntime(
  named: string | 'default',
  facts: EngineFacts,
  engine: EngineName,
  cacheDir: string,
): RuntimeChoice {
  // A daemon has only its configured runtimes. podman accepts any.
  if (named !== 'default' || engine === 'docker')
    return { candidates: [named === 'default' ? undefined : named], worked: () => undefined }
  const first = usualRuntime(facts, cacheDir)
  const rest = [facts.runtime, ...OTHERS].filter(name => name !== first && findTool(name) !== undefined)
  const flag = (name: string) => (name === facts.runtime ? undefined : name)
  return {
    candidates: [...new Set([first, ...rest])].map(flag),
    worked: runtime => {
      const name = runtime ?? facts.runtime
      if (name !== first) remember(fileOf(cacheDir), keyOf(facts), name)
    },
  }
}

/** The runtime that worked last, or the engine's default. */
const usualRuntime = (facts: EngineFacts, cacheDir: string): string =>
  recall<string>(fileOf(cacheDir), keyOf(facts)) ?? facts.runtime

const fileOf = (cacheDir: string): string => `${cacheDir}/runtime.json`
/** A result for another version is not used. */
const keyOf = ({ version, runtime }: EngineFacts): string => `${version} ${runtime}`

/** True when the runtime failed and not the engine. Another runtime may work. */
export const isRuntimeFailure = (answer: Captured): boolean =>
  /OCI runtime|\b(crun|runc|runsc)\b/.test(reasonOf(answer))

export const runtimeFor = (isolation: string, facts: EngineFacts, cacheDir: string): string =>
  isolation === 'gvisor' ? GVISOR_RUNTIME : usualRuntime(facts, cacheDir)
