/**
 * Grants below a denied directory. An empty directory covers the denied one and hides its contents. The grants are mounted
 * into the cover. The cover can be traversed but not listed, and it is sealed after the last mount.
 */
import { dirname } from '../base/posix-path.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import { type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { showSource } from '../policy/source.ts'
import type { HostFacts } from './facts.ts'
import type { Step } from './plan.ts'

/** `steps` are sorted: parents come first. */
export function openCovers(steps: readonly Step[]): Step[] {
  const seals: Step[] = []
  const opened = steps.map((step, i): Step => {
    if (step.op !== 'cover' || step.kind !== 'directory') return step
    const isOpen = steps
      .slice(i + 1)
      .some(below => below.op === 'bind' && below.at !== step.at && isWithin(below.at, step.at))
    if (!isOpen) return step
    seals.push({ op: 'seal', at: step.at })
    return { ...step, passable: true }
  })
  return [...opened, ...seals]
}

/**
 * Denied directories that do not exist yet and that pen creates for a grant below them. The survey cannot find them, so they
 * are added here and denied from the start.
 */
export function deniedAbove(policy: Policy, made: readonly HostPath[]): HostFacts['denied'] {
  const out = new Map<string, HostFacts['denied'][number]>()
  for (const path of made)
    for (
      let at = dirname(path);
      isWithin(at, policy.workspace) && at !== policy.workspace;
      at = dirname(at)
    ) {
      const denial = denialAt(policy, at)
      // The topmost one hides the others.
      if (denial === undefined || denialAt(policy, dirname(at)) !== undefined) continue
      out.set(at, { path: at as HostPath, kind: 'directory', why: denial })
    }
  return [...out.values()]
}

function denialAt(policy: Policy, path: string): string | undefined {
  const verdict = decideFile(policy, path as HostPath, 'read')
  if (verdict.ok || verdict.reason !== 'denied-by-rule') return undefined
  return `${verdict.rule}${verdict.source === undefined ? '' : `, ${showSource(verdict.source)}`}`
}
