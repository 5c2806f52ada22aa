import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { collectLeftovers, listAbandoned } from '../../../lifecycle/leftovers.ts'
import { listSandboxes } from '../../../lifecycle/list.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { whileTelling } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'gc',
  summary: 'Remove leftovers of sandboxes, and unused images',
  details:
    'Records, sockets, cgroups and containers are taken away by every command for its own project, and what a container saw of pen by the project’s next container; images only here. A sandbox keeps the image that it used last, until pen rm. Nothing that runs is touched, no configuration, no volume and no audit. Sandboxes whose directory is gone are listed: pen rm removes them.',
  flags: defineFlags({
    ...jsonFlag,
    'dry-run': { kind: 'boolean', about: 'tell what would be taken away, and leave it' },
  }),
  examples: [
    { line: 'pen gc --dry-run', does: 'what there is' },
    { line: 'pen gc', does: 'take it away' },
  ],
  async run({ flags, terminal }) {
    const dryRun = flags['dry-run']
    const found = await whileTelling('looking at what is there', terminal, () =>
      collectLeftovers({ remove: !dryRun }),
    )
    const abandoned = listAbandoned(await listSandboxes({ repair: false }))
    if (flags.json) terminal.printJson({ version: 1, removed: !dryRun, leftovers: found, abandoned })
    else {
      if (found.length === 0) terminal.print('nothing was left behind')
      for (const { kind, name } of found)
        terminal.print(`${dryRun ? 'would remove' : 'removed'} ${kind} ${printable(name, 4096)}`)
      for (const { id, workspace } of abandoned)
        terminal.print(`kept sandbox ${id}: ${printable(workspace, 4096)} is gone; pen rm ${id} removes it`)
    }
    return EXIT.ok
  },
})
