import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { uninstall } from '../../../lifecycle/uninstall.ts'
import { agreesToRemove } from '../../frame/ask.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { whileTelling } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'uninstall',
  summary: "Stop all your sandboxes and remove pen's files",
  details:
    'Sandboxes with their configuration, audit, log and volumes; containers and cgroups that were left; images that pen built; ~/.pen. No file of a project is touched, its .pen/ neither. What only you can remove, the program itself for one, is told. While a pen run goes on, nothing is removed.',
  flags: defineFlags({
    ...jsonFlag,
    'dry-run': { kind: 'boolean', about: 'tell what would be removed, and leave it' },
    'keep-config': { kind: 'boolean', about: 'leave the live configuration of every project' },
    yes: { kind: 'boolean', about: 'do not ask' },
  }),
  examples: [
    { line: 'pen uninstall --dry-run', does: 'what would go, and what stays' },
    { line: 'pen uninstall', does: 'after asking' },
    { line: 'pen uninstall --keep-config --yes', does: 'to begin afresh with the same configuration' },
  ],
  async run({ flags, terminal }) {
    const keepConfig = flags['keep-config']
    const remove = !flags['dry-run']
    if (remove && !flags.yes) {
      const [and, but] = keepConfig ? ['', ' The configuration stays.'] : [', configurations', '']
      const question = `All your sandboxes end, and their volumes${and}, audits and images are removed.${but}`
      if (!(await agreesToRemove(question, 'uninstall', terminal))) return EXIT.failed
    }
    const done = await whileTelling('ending sandboxes', terminal, () => uninstall({ remove, keepConfig }))
    const left = done.left.map(({ message, at, hint }) => ({ what: message, at: String(at), hint }))
    const stays = whatStays(keepConfig)
    if (flags.json) terminal.printJson({ version: 1, removed: remove, things: done.removed, left, stays })
    else {
      const say = (line: string): void => terminal.print(printable(line, 4096))
      if (done.removed.length + left.length === 0) say('nothing of pen is kept on this machine')
      for (const { kind, name } of done.removed) say(`${remove ? 'removed' : 'would remove'} ${kind} ${name}`)
      for (const { what, at, hint } of left) say(`left ${at}: ${what}; fix: ${hint}`)
      for (const line of stays) say(`stays: ${line}`)
    }
    return left.length === 0 ? EXIT.ok : EXIT.failed
  },
})

/** Whatever was there before pen, or belongs to a project, or cannot be told from what others need. */
const whatStays = (keepConfig: boolean): string[] => [
  ...(keepConfig ? ['~/.pen/sandboxes, with the live configuration alone'] : []),
  `${process.execPath}, the program itself`,
  'the .pen/ and agent-permissions.json of your projects',
  'packages that were installed for pen, and base images',
  'pen’s own image in a Docker daemon, which others may use, and images in an engine that does not answer',
]
