import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { uninstall } from '../../../lifecycle/uninstall.ts'
import { confirmRemoval } from '../../frame/ask.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'uninstall',
  summary: "Stop all your sandboxes and remove pen's files",
  details:
    'Restores the settings of agents with a hook. Removes sandboxes with their config, audit, log and volumes; leftover containers and cgroups; images that pen built; ~/.pen, and its line in ~/.ssh/config. Projects and their .pen/ are not touched. pen lists what you must remove yourself, such as the program. Refuses while a pen run is active.',
  flags: {
    'dry-run': { kind: 'boolean', about: 'show what would be removed, without removing it' },
    'keep-config': { kind: 'boolean', about: 'keep the live config of every project' },
    discard: { kind: 'boolean', about: 'also delete changes of --review that you have not accepted' },
    yes: { kind: 'boolean', about: 'do not ask for confirmation' },
  },
  examples: {
    'pen uninstall --dry-run': 'show what would be removed, and what stays',
    'pen uninstall': 'ask, then remove everything',
    'pen uninstall --keep-config --yes': 'reset pen, but keep the configs',
  },
  async run({ flags, terminal, answer }) {
    const keepConfig = flags['keep-config']
    const remove = !flags['dry-run']
    if (remove && !flags.yes) {
      const [and, but] = keepConfig ? ['', ' Their configs stay.'] : [', configs', '']
      const question = `This stops all your sandboxes and removes their volumes${and}, audits and images.${but}`
      if (!confirmRemoval(question, 'uninstall', terminal)) return EXIT.failed
    }
    const done = await withProgress('stopping sandboxes', terminal, () =>
      uninstall({ remove, keepConfig, discard: flags.discard }),
    )
    const left = done.left.map(({ message, at, hint }) => ({ what: message, at: String(at), hint }))
    const stays = whatStays(keepConfig)
    const lines = [
      ...(done.removed.length + left.length === 0 ? ['nothing to remove'] : []),
      ...done.removed.map(({ kind, name }) => `${remove ? 'removed' : 'would remove'} ${kind} ${name}`),
      ...left.map(({ what, at, hint }) => `left ${at}: ${what}; fix: ${hint}`),
      ...stays.map(line => `stays: ${line}`),
    ]
    answer(
      { version: 1, removed: remove, things: done.removed, left, stays },
      lines.map(line => printable(line, 4096)),
    )
    return left.length === 0 ? EXIT.ok : EXIT.failed
  },
})

/** What pen did not create, what belongs to a project, and what other users may need. */
const whatStays = (keepConfig: boolean): string[] => [
  ...(keepConfig ? ['~/.pen/sandboxes, with the live configs only'] : []),
  `${process.execPath}, the program itself`,
  'the .pen/ and agent-permissions.json of your projects',
  'packages that were installed for pen, and base images',
  "pen's image in a shared Docker daemon, and images of an engine that does not answer",
]
