import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { collectLeftovers, listAbandoned } from '../../../lifecycle/leftovers.ts'
import { listSandboxes } from '../../../lifecycle/list.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'gc',
  summary: 'Remove leftovers of sandboxes, and unused images',
  details:
    "Every command cleans up after its own project; pen gc cleans up all projects and is the only one that removes images. It keeps running sandboxes, configs, volumes, audits, and each sandbox's last image. It also lists sandboxes whose directory no longer exists; remove them with pen rm.",
  flags: defineFlags({
    ...jsonFlag,
    'dry-run': { kind: 'boolean', about: 'show what would be removed, without removing it' },
  }),
  examples: [
    { line: 'pen gc --dry-run', does: 'show the leftovers' },
    { line: 'pen gc', does: 'remove them' },
  ],
  async run({ flags, terminal }) {
    const dryRun = flags['dry-run']
    const found = await withProgress('looking for leftovers', terminal, () =>
      collectLeftovers({ remove: !dryRun }),
    )
    const abandoned = listAbandoned(await listSandboxes({ repair: false }))
    if (flags.json) terminal.printJson({ version: 1, removed: !dryRun, leftovers: found, abandoned })
    else {
      if (found.length === 0) terminal.print('nothing to remove')
      for (const { kind, name } of found)
        terminal.print(`${dryRun ? 'would remove' : 'removed'} ${kind} ${printable(name, 4096)}`)
      for (const { id, workspace } of abandoned)
        terminal.print(
          `kept sandbox ${id}: its directory ${printable(workspace, 4096)} no longer exists; fix: pen rm ${id}`,
        )
    }
    return EXIT.ok
  },
})
