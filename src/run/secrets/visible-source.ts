/**
 * A file that the sandbox can read or replace is no source of a secret. Paths alone do not show that: links, bind mounts
 * and hard links give one file several names. So files and directories are compared by identity.
 */
import { type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PenError } from '../../base/error.ts'
import { LinkTrails } from '../../config/home/link-trail.ts'
import type { Plan } from '../../plan/plan.ts'
import { decideFile } from '../../policy/files/decide-file.ts'
import { type HostPath, isWithin } from '../../policy/files/path.ts'
import type { Secret } from '../../policy/network/secret.ts'
import type { Policy } from '../../policy/policy.ts'

export function refuseVisible(secrets: readonly Secret[], policy: Policy, plan: Plan): void {
  for (const { name, from } of secrets) {
    const why = from.kind === 'file' ? whyVisible(from.path, policy, plan) : undefined
    if (why === undefined || from.kind !== 'file') continue
    throw new PenError('SECRET', {
      what: `the secret ${name} is in a file that ${why}`,
      at: from.path,
      hint: 'copy the file to a place outside the project and the granted paths, and use the copy',
    })
  }
}

/** Undefined for a file that is absent too: the read reports that. */
export function whyVisible(path: string, policy: Policy, plan: Pick<Plan, 'steps'>): string | undefined {
  const isGranted = (one: string): boolean => decideFile(policy, one as HostPath, 'read').ok
  const trail = new LinkTrails(isGranted).follow(path)
  if (trail.through.length > 0) return 'is reached over a link that the sandbox can replace'
  if (isGranted(path) || isGranted(trail.end) || isMounted(trail.end, plan)) return 'the sandbox can read'
  return (trail.stats?.nlink ?? 1) > 1 ? 'has a hard link elsewhere, which the sandbox may read' : undefined
}

/** Whether the sandbox can replace this file, or a link on the way to it. pen must not run such a program. */
export function isReplaceable(path: string, policy: Policy): boolean {
  const isWritable = (one: string): boolean => decideFile(policy, one as HostPath, 'write').ok
  const trail = new LinkTrails(isWritable).follow(path)
  return trail.through.length > 0 || isWritable(path) || isWritable(trail.end)
}

/** The gateway trusts what `NODE_EXTRA_CA_CERTS` of the host names. A sandbox must not write it: a later server could lie. */
export function refuseReplaceableTrust(named: string | undefined, policy: Policy): void {
  if (named === undefined || named === '') return
  const path = resolve(named)
  if (!isReplaceable(path, policy)) return
  throw new PenError('SECRET', {
    what: 'NODE_EXTRA_CA_CERTS names a file that the sandbox can write, and pen would trust its authorities',
    at: path,
    hint: 'name a copy outside the project, or run pen without the variable',
  })
}

/** Whether a mount of the plan shows the file, and no later step covers it. */
function isMounted(file: string, { steps }: Pick<Plan, 'steps'>): boolean {
  const above = ancestors(file).map(path => ({ path, stats: identityOf(path) }))
  return steps.some((step, i) => {
    if (step.op !== 'bind') return false
    const from = identityOf(step.from)
    const match = above.find(({ stats }) => from !== undefined && isSame(stats, from))
    if (match === undefined) return false
    const inside = `${step.at}${file.slice(match.path.length)}`
    return !steps.slice(i + 1).some(({ op, at }) => COVERS.has(op) && isWithin(inside, at))
  })
}

const COVERS: ReadonlySet<string> = new Set(['bind', 'tmpfs', 'cover', 'file'])

/** The path itself first. */
function ancestors(path: string): string[] {
  const above = dirname(path)
  return above === path ? [path] : [path, ...ancestors(above)]
}

const identityOf = (path: string): Stats | undefined => {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    // The sandbox cannot look at it either.
    return undefined
  }
}

const isSame = (a: Stats | undefined, b: Stats): boolean => a?.dev === b.dev && a.ino === b.ino
