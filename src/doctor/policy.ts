/** Whether this machine can enforce the policy of this project, loaded as in `pen run`. Starts nothing. */
import { openGaps } from '../plan/gaps.ts'
import { prepare } from '../run/prepare.ts'
import { type Finding, fails, hintOf, messageOf, ok } from './finding.ts'
import type { Machine } from './machine.ts'

export async function checkPolicy({ project, env }: Machine): Promise<readonly Finding[]> {
  if (project === undefined) return []
  try {
    const { loaded, plan } = await prepare({
      command: [],
      env,
      allowUserExpansion: false,
      offline: false,
      flags: () => ({}),
    })
    const gaps = openGaps(plan.gaps, loaded.policy.acceptGaps)
    if (gaps.length === 0) return [ok('policy', "this machine can enforce this project's policy")]
    return [
      fails(
        'policy',
        "this machine cannot enforce all of this project's policy",
        gaps.map(({ name, why }) => `${name}: ${why}`).join('; '),
        `pen run ${gaps.map(({ name }) => `--accept-gap ${name}`).join(' ')}, or change the policy`,
      ),
    ]
  } catch (error) {
    return [fails('policy', "this project's policy is not valid", messageOf(error), hintOf(error))]
  }
}
