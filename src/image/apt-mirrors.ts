/** Where the packages of an image come from, as its own apt is told: so that a private mirror just works. */
import type { Engine } from '../backend/container/engine/engine.ts'
import { deb822Sources, oneLineSources } from '../config/registries/apt-sources.ts'
import { mirrorRule } from '../config/registries/mirror.ts'
import { type AllowRule, printRule } from '../policy/network/net-rule.ts'
import type { Sourced } from '../policy/source.ts'
import { filesOf } from './inspect.ts'

/** Not all of `/etc/apt`: its keys are binary, and may be long. */
const SOURCES = ['/etc/apt/sources.list', '/etc/apt/sources.list.d']

/** For pen's own Dockerfile alone, which asks them for packages and for nothing else. */
export async function aptMirrors(engine: Engine, id: string): Promise<readonly Sourced<AllowRule>[]> {
  const rules = new Map<string, Sourced<AllowRule>>()
  for (const { name, text } of await filesOf(engine, id, SOURCES)) {
    const at = `/etc/apt/${name} of the base image`
    const mirrors = name.endsWith('.sources')
      ? deb822Sources(text, at)
      : name.endsWith('.list')
        ? oneLineSources(text, at)
        : []
    for (const mirror of mirrors) {
      const rule = mirrorRule(mirror)
      if (rule !== undefined)
        rules.set(printRule(rule), { rule, source: { layer: at, place: undefined, note: 'packages' } })
    }
  }
  return [...rules.values()]
}
