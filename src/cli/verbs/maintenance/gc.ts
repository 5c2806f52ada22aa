import { printable } from '../../../base/printable.ts'
import { collectLeftovers, listAbandoned } from '../../../lifecycle/leftovers.ts'
import { listSandboxes } from '../../../lifecycle/list.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'gc',
  summary: 'Remove leftovers of sandboxes, and unused images',
  details:
    "Every command cleans up after its own project; pen gc cleans up all projects and is the only one that removes images. It keeps running sandboxes, configs, volumes, audits, and each sandbox's last image. It also lists sandboxes whose directory no longer exists; remove them with pen rm.",
  flags: {
    'dry-run': { kind: 'boolean', about: 'show what would be removed, without removing it' },
  },
  examples: {
    'pen gc --dry-run': 'show the leftovers',
    'pen gc': 'remove them',
  },
  async run({ flags, terminal, answer }) {
    const dryRun = flags['dry-run']
    const found = await withProgress('looking for leftovers', terminal, () =>
      collectLeftovers({ remove: !dryRun }),
    )
    const abandoned = listAbandoned(await listSandboxes({ repair: false }))
    const did = dryRun ? 'would remove' : 'removed'
    answer({ version: 1, removed: !dryRun, leftovers: found, abandoned }, [
      ...(found.length === 0 ? ['nothing to remove'] : []),
      ...found.map(({ kind, name }) => `${did} ${kind} ${printable(name, 4096)}`),
      ...abandoned.map(
        ({ id, workspace }) =>
          `kept sandbox ${id}: its directory ${printable(workspace, 4096)} no longer exists; fix: pen rm ${id}`,
      ),
    ])
  },
})
