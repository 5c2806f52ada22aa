/** The policy of this project, as `pen run` would load it: whether this machine can keep it. Nothing is started. */
import { openGaps } from '../plan/gaps.ts'
import { prepare } from '../run/prepare.ts'
import { type Finding, fails, ok } from './finding.ts'
import type { Machine } from './machine.ts'
import { hintOf, messageOf } from './message.ts'

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
    if (gaps.length === 0) return [ok('policy', 'this machine can keep the policy of this project')]
    return [
      fails(
        'policy',
        'this machine cannot keep all of the policy of this project',
        gaps.map(({ name, why }) => `${name}: ${why}`).join('; '),
        `accept by name with ${gaps.map(({ name }) => `--accept-gap ${name}`).join(' ')}, or change the policy`,
      ),
    ]
  } catch (error) {
    return [fails('policy', 'the policy of this project cannot be used', messageOf(error), hintOf(error))]
  }
}
