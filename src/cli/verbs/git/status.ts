import { EXIT } from '../../../base/error.ts'
import { ownDirectories, pendingIn } from '../../../repository/pending.ts'
import type { SyncAllOptions } from '../../../repository/sync-all.ts'
import { prepare } from '../../../run/prepare.ts'
import { repositoryOptions } from '../../../run/repository-options.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'git status',
  summary: 'Show what git has only in the sandbox',
  details:
    'A sandbox has a git directory of its own. Lists refs that are not on the host yet, refs that were deleted inside, and an unfinished rebase, merge, pick or bisect.',
  flags: jsonFlag,
  examples: [
    { line: 'pen git status', does: 'show what is not on the host yet' },
    { line: 'pen git status --json', does: 'print JSON' },
  ],
  async run({ flags, env, terminal }) {
    const pending = (await Promise.all((await ownRepositories(env)).map(pendingIn))).flat()
    if (flags.json) terminal.printJson({ version: 1, pending })
    else if (pending.length === 0) terminal.print('nothing: everything is on the host')
    else
      for (const { name, what, commit } of pending)
        terminal.print(`${name}: ${what}${commit === undefined ? '' : ` (${commit.slice(0, 10)})`}`)
    return EXIT.ok
  },
})

/** Of sandboxes that run, and of those that left something. */
export async function ownRepositories(
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly SyncAllOptions[]> {
  const prepared = await prepare({
    command: [],
    env,
    allowUserExpansion: false,
    offline: true,
    flags: () => ({}),
  })
  const options = repositoryOptions(prepared)
  if (options === undefined) return []
  return ownDirectories(options.world.sandbox.stateDir).map(place => ({ ...options, ...place }))
}
