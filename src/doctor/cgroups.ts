/** Limits, by making the cgroup that a sandbox would get and taking it away again. */
import { existsSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { toMillis } from '../base/quantity.ts'
import { capture } from '../base/spawn.ts'
import { type Bounds, openBounds } from '../limits/bounds.ts'
import { findLimitSupport, type LimitMechanism, type LimitPlan, planOf } from '../limits/probe.ts'
import type { Limits } from '../policy/policy.ts'
import { type Finding, fails, lastLine, ok, weak } from './finding.ts'
import { messageOf } from './message.ts'

const ID = 'limits'

const SOME: Limits = {
  cpus: 0.5,
  memory: (256 * 2 ** 20) as Limits['memory'],
  pids: 64,
  wall: toMillis(60_000),
  disk: (2 ** 20) as Limits['disk'],
  output: (2 ** 20) as Limits['output'],
  files: 64,
}

const NAMES: Readonly<Record<LimitMechanism['how'], string>> = {
  'cgroup-v1': 'a cgroup (version 1)',
  'cgroup-v2': 'a cgroup (version 2)',
  'systemd-scope': 'a scope of the user’s service manager',
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
        'look at the limits that pen itself runs under',
      ),
    ]
  }
  const dirs = bounds.cgroup?.dirs ?? []
  const problem = plan.how === 'systemd-scope' ? await tryScope(bounds) : undefined
  bounds.cgroup?.close()
  // A cgroup that stays is a finding below.
  await bounds.remove().catch(() => undefined)
  if (problem !== undefined)
    return [
      fails(
        ID,
        `${NAMES[plan.how]} could not be made`,
        problem,
        'systemctl --user status tells what is wrong with it',
      ),
    ]
  const left = dirs.filter(dir => existsSync(dir))
  if (left.length > 0)
    return [weak(ID, `a cgroup could not be taken away again: ${left.join(', ')}`, undefined, 'rmdir it')]
  return [describe(plan)]
}

async function tryScope({ wrap, wrapEnv }: Bounds): Promise<string | undefined> {
  const program = findTool('true') ?? '/bin/true'
  const { code, stderr } = await capture([...wrap, program], { env: wrapEnv, timeoutMs: 8000, cwd: '/' })
  return code === 0 ? undefined : lastLine(stderr) || `it ended with ${code}`
}

export function describe({ how, holds }: LimitPlan): Finding {
  const held = (by: string): string =>
    Object.entries(holds)
      .filter(([, hold]) => hold === by)
      .map(([limit]) => limit)
      .join(', ')
  const made = how === 'watchdog' ? NAMES[how] : `${NAMES[how]} was made and taken away`
  const what = `${made}: the kernel holds ${held('kernel')}; pen watches ${held('watchdog')}`
  if (holds.memory === 'kernel' && holds.cpus === 'kernel' && holds.pids === 'kernel') return ok(ID, what)
  return weak(
    ID,
    what,
    'what is watched may be exceeded for a moment',
    how === 'watchdog'
      ? 'run pen in a session that systemd started (log in anew, or loginctl enable-linger), or where you may write to your cgroup'
      : 'have the missing controllers handed down to your session',
  )
}
