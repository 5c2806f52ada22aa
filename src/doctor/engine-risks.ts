/** Known vulnerabilities of the engine and the runtime of a container. */
import { type EngineName, findEngine } from '../backend/container/engine/engine.ts'
import { engineFacts } from '../backend/container/engine/engine-facts.ts'
import { runtimeFor } from '../backend/container/engine/runtimes.ts'
import { findTool } from '../base/find-tool.ts'
import { riskOf } from './known-escapes.ts'
import { askVersion, findVersion } from './version.ts'

/** One line per vulnerable program. An engine that does not answer is no risk, because no container runs on it. */
export async function engineRisks(
  name: EngineName,
  isolation: string,
  cacheDir: string,
): Promise<readonly string[]> {
  try {
    const engine = findEngine(name)
    if (engine === undefined) return []
    const facts = await engineFacts(engine, cacheDir)
    const runtime = runtimeFor(isolation, facts, cacheDir)
    const program = findTool(runtime)
    return riskOf([
      { name, version: findVersion(facts.version) ?? '' },
      {
        name: runtime,
        version: (program === undefined ? undefined : await askVersion(program)) ?? '',
      },
    ])
  } catch {
    return []
  }
}
