/** Checks limits: creates the cgroup that a sandbox would get, and removes it. */
import { existsSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { parseMillis } from '../base/quantity.ts'
import { capture } from '../base/spawn.ts'
import { type Bounds, openBounds } from '../limits/bounds.ts'
import { findLimitSupport, type LimitMechanism, type LimitPlan, planOf } from '../limits/probe.ts'
import type { Limits } from '../policy/policy.ts'
import { type Finding, fails, lastLine, messageOf, ok, weak } from './finding.ts'

const ID = 'limits'

const SOME: Limits = {
  cpus: 0.5,
  memory: (256 * 2 ** 20) as Limits['memory'],
  pids: 64,
  wall: parseMillis('60s'),
  disk: (2 ** 20) as Limits['disk'],
  output: (2 ** 20) as Limits['output'],
  files: 64,
}

const NAMES: Readonly<Record<LimitMechanism['how'], string>> = {
  'cgroup-v1': 'a cgroup (version 1)',
  'cgroup-v2': 'a cgroup (version 2)',
  'systemd-scope': 'a systemd user scope',
  engine: 'cgroups of a container engine',
  watchdog: 'no cgroup',
}

export async function checkLimits(): Promise<readonly Finding[]> {
  const support = findLimitSupport()
  const plan = planOf(support)
  let bounds: Bounds
  try {
    bounds = openBounds({ limits: SOME, runId: 'doctor', support })
  } catch (error) {
    return [
      fails(
        ID,
        `${NAMES[plan.how]} could not be made`,
        messageOf(error),
        'check the limits of the session that runs pen',
      ),
    ]
  }
  const dirs = bounds.cgroup?.dirs ?? []
  const problem = plan.how === 'systemd-scope' ? await tryScope(bounds) : undefined
  bounds.cgroup?.close()
  // A cgroup that could not be removed is reported below.
  await bounds.remove().catch(() => undefined)
  if (problem !== undefined)
    return [fails(ID, `${NAMES[plan.how]} could not be made`, problem, 'systemctl --user status')]
  const left = dirs.filter(dir => existsSync(dir))
  if (left.length > 0)
    return [
      weak(ID, `a cgroup could not be removed: ${left.join(', ')}`, undefined, `rmdir ${left.join(' ')}`),
    ]
  return [describe(plan)]
}

async function tryScope({ wrap, wrapEnv }: Bounds): Promise<string | undefined> {
  const program = findTool('true') ?? '/bin/true'
  const { code, stderr } = await capture([...wrap, program], { env: wrapEnv, timeoutMs: 8000, cwd: '/' })
  return code === 0 ? undefined : lastLine(stderr) || `exit ${code}`
}

export function describe({ how, holds }: LimitPlan): Finding {
  const limitsBy = (by: string): string =>
    Object.entries(holds)
      .filter(([, hold]) => hold === by)
      .map(([limit]) => limit)
      .join(', ')
  const made = how === 'watchdog' ? NAMES[how] : `${NAMES[how]} works`
  const what = `${made}: the kernel enforces ${limitsBy('kernel')}; pen checks ${limitsBy('watchdog')}`
  if (holds.memory === 'kernel' && holds.cpus === 'kernel' && holds.pids === 'kernel') return ok(ID, what)
  return weak(
    ID,
    what,
    'limits that pen checks can be exceeded for a moment',
    how === 'watchdog'
      ? 'run pen in a systemd session (log in again, or loginctl enable-linger), or with a writable cgroup'
      : 'delegate the missing cgroup controllers to your session',
  )
}
