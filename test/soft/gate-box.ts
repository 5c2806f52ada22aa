/** A project with a gate, as a supervisor makes one: a policy of the user, and an audit in memory. */
import { realpathSync } from 'node:fs'
import type { AuditEventInput } from '../../src/audit/event.ts'
import { Gate, type GateOptions } from '../../src/backend/soft/gate/gate.ts'
import { type Loaded, loadPolicy } from '../../src/config/load.ts'
import { projectHere } from '../../src/config/project.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { type TemporaryProject, temporaryProject, withHome } from '../temporary-project.ts'

export interface GateBox extends Disposable {
  readonly project: TemporaryProject
  readonly gate: Gate
  readonly records: AuditEventInput[]
  readonly policy: Policy
  /** The records of these kinds, oldest first. */
  of<K extends AuditEventInput['kind']>(kind: K): (AuditEventInput & { kind: K })[]
}

export async function gateBox(config: object, more: Partial<GateOptions> = {}): Promise<GateBox> {
  const project = temporaryProject()
  project.writeLive('config.json', JSON.stringify({ version: 1, ...config }))
  const loaded: Loaded = await withHome(project.home, () =>
    loadPolicy(projectHere(project.workspace), { flags: {}, allowUserExpansion: false, offline: false }),
  )
  const records: AuditEventInput[] = []
  const gate = new Gate({
    policy: () => loaded.policy,
    audit: { record: event => void records.push(event) },
    world: loaded.project.world,
    env: { PATH: '/usr/bin:/bin', HOME: project.root, LANG: 'C.UTF-8' },
    runAs: 'self',
    ...more,
  })
  return {
    project: { ...project, workspace: realpathSync(project.workspace) },
    gate,
    records,
    policy: loaded.policy,
    of: kind => records.filter(event => event.kind === kind) as never,
    [Symbol.dispose]: () => project[Symbol.dispose](),
  }
}

/** The code of a refusal, or what was returned. */
export async function reasonOf(work: Promise<unknown> | (() => Promise<unknown>)): Promise<unknown> {
  try {
    return { done: await (typeof work === 'function' ? work() : work) }
  } catch (error) {
    if (error instanceof Error && 'reason' in error) return error.reason
    throw error
  }
}
