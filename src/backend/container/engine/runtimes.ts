/**
 * Which OCI runtime starts a container: the policy's, else the engine's own, else the first that works. Some refuse a machine
 * (its layout of cgroups, its kernel) that others take: found by trying, and remembered for the next start.
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
  /** In the order of trying; undefined is the engine's own. */
  readonly candidates: readonly (string | undefined)[]
  worked(runtime: string | undefined): void
}

export function chooseRuntime(
  named: string | 'default',
  facts: EngineFacts,
  engine: 'podman' | 'docker',
  cacheDir: string,
): RuntimeChoice {
  // A daemon has the runtimes that it was configured with; only podman takes any.
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

/** The one that worked last, else the engine's own. */
export function usualRuntime(facts: EngineFacts, cacheDir: string): string {
  const known = recall(fileOf(cacheDir))
  const key = keyOf(facts)
  return known?.startsWith(key) ? known.slice(key.length) : facts.runtime
}

const fileOf = (cacheDir: string): string => `${cacheDir}/runtime`
/** What worked for another version is tried anew. */
const keyOf = ({ version, runtime }: EngineFacts): string => `${version} ${runtime} `

/** The runtime refused, not the engine: another may do better. */
export const blamesRuntime = (answer: Captured): boolean =>
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
