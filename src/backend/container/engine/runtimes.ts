/**
 * Chooses the OCI runtime: the policy's, or the engine's default, or the first that works. Some runtimes refuse a
 * machine (its cgroup layout, its kernel) that others accept. pen finds out by trying, and caches the result.
 */
import { mkdirSync } from 'node:fs'
import { writeFileAtomically } from '../../../base/atomic-file.ts'
import { findTool } from '../../../base/find-tool.ts'
import { readRegularFile } from '../../../base/regular-file.ts'
import type { Captured } from '../../../base/spawn.ts'
import { reasonOf } from './engine.ts'
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
  engine: 'podman' | 'docker',
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
      if (name === first) return
      mkdirSync(cacheDir, { recursive: true, mode: 0o700 })
      writeFileAtomically(fileOf(cacheDir), `${keyOf(facts)}${name}`)
    },
  }
}

/** The runtime that worked last, or the engine's default. */
export function usualRuntime(facts: EngineFacts, cacheDir: string): string {
  const known = recall(fileOf(cacheDir))
  const key = keyOf(facts)
  return known?.startsWith(key) ? known.slice(key.length) : facts.runtime
}

const fileOf = (cacheDir: string): string => `${cacheDir}/runtime`
/** A result for another version is not used. */
const keyOf = ({ version, runtime }: EngineFacts): string => `${version} ${runtime} `

/** True when the runtime failed and not the engine. Another runtime may work. */
export const isRuntimeFailure = (answer: Captured): boolean =>
  /OCI runtime|\b(crun|runc|runsc)\b/.test(reasonOf(answer))

function recall(file: string): string | undefined {
  try {
    return readRegularFile(file, { maxBytes: 256, owner: 'self-or-root' })?.toString('utf8')
  } catch {
    return undefined
  }
}

export const runtimeFor = (isolation: string, facts: EngineFacts, cacheDir: string): string =>
  isolation === 'gvisor' ? GVISOR_RUNTIME : usualRuntime(facts, cacheDir)
