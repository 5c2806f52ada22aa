import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import {
  forgetSandbox,
  hasOnlyCopies,
  isKnown,
  isNamed,
  keptVolumes,
  refuseWithNames,
} from '../../../lifecycle/forget.ts'
import { chosenSandbox } from '../../../lifecycle/list.ts'
import { confirmRemoval } from '../../frame/ask.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'rm',
  summary: "Stop this project's sandbox and delete its state",
  details:
    'Deletes its live config, audit and log, commits that only the sandbox has (see pen git status) and the quarantine; with --volumes also its volumes. Refuses while there are changes to review, without --discard. A named sandbox (--name) loses all of its state; the project keeps its config. The project and its .pen/ are not touched; pen init or pen config apply activates .pen/ again.',
  flags: {
    volumes: { kind: 'boolean', about: 'also delete its volumes' },
    discard: { kind: 'boolean', about: 'also delete changes of --review that you have not accepted' },
    yes: { kind: 'boolean', about: 'do not ask for confirmation' },
  },
  positionals: { id: { arity: 'optional', about: 'sandbox from pen ls (default: that of this project)' } },
  examples: {
    'pen rm': 'ask, then delete',
    'pen rm --name fix-a': 'a named sandbox, with its volumes',
    'pen rm api-1a2b3c4d5e6f7a8b': 'the sandbox of a deleted project',
    'pen rm --volumes --yes': 'delete everything, without asking',
  },
  async run(invocation) {
    const { flags, positionals, terminal, answer } = invocation
    const { id, stateDir, workspace } = await chosenSandbox(positionals.id, invocation)
    if (!isKnown(stateDir)) {
      answer({ version: 1, id, removed: false }, `${id}: nothing to delete`)
      return EXIT.ok
    }
    refuseWithNames(stateDir)
    const keep = flags.volumes ? [] : keptVolumes(stateDir)
    const what = `its ${isNamed(stateDir) ? '' : 'live config, '}audit${keep.length === 0 ? ', volumes' : ''} and log`
    const only = hasOnlyCopies(stateDir)
      ? ' It also deletes what only the sandbox has: commits and staged files that "pen git status" lists, and the quarantine.'
      : ''
    const question = `This stops the sandbox of ${printable(workspace ?? id, 4096)} and deletes ${what}.${only}`
    if (!flags.yes && !confirmRemoval(question, 'rm', terminal)) return EXIT.failed
    await withProgress('stopping the sandbox', terminal, () =>
      forgetSandbox(stateDir, { keep, discard: flags.discard }),
    )
    answer({ version: 1, id, removed: true }, `${id}: removed`)
    return EXIT.ok
  },
})
