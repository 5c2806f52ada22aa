import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { forgetSandbox, isKnown, VOLUMES } from '../../../lifecycle/forget.ts'
import { sandboxNamed } from '../../../lifecycle/named-sandbox.ts'
import { agreesToRemove } from '../../frame/ask.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { whileTelling } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'rm',
  summary: "Stop this project's sandbox and delete its state",
  details:
    'Its live configuration, audit and log are removed; with --volumes its volumes too, which otherwise stay for the next time. The project itself is not touched, nor is its .pen/, which pen init or pen config apply puts in force again.',
  flags: defineFlags({
    ...jsonFlag,
    volumes: { kind: 'boolean', about: 'remove its volumes as well' },
    yes: { kind: 'boolean', about: 'do not ask' },
  }),
  positionals: { name: { arity: 'optional', about: 'another one, as pen ls names it' } },
  examples: [
    { line: 'pen rm', does: 'after asking' },
    { line: 'pen rm api-1a2b3c4d5e6f7a8b', does: 'that of a project which is gone, perhaps' },
    { line: 'pen rm --volumes --yes', does: 'all of it, in a script' },
  ],
  async run({ flags, positionals, terminal }) {
    const { id, stateDir, workspace } = await sandboxNamed(positionals.name)
    if (!isKnown(stateDir)) {
      if (flags.json) terminal.printJson({ version: 1, id, removed: false })
      else terminal.print(`${id}: nothing is kept of it`)
      return EXIT.ok
    }
    const what = `its configuration, audit${flags.volumes ? ', volumes' : ''} and log`
    const question = `The sandbox of ${printable(workspace ?? id, 4096)} ends, and ${what} are removed.`
    if (!flags.yes && !(await agreesToRemove(question, 'rm', terminal))) return EXIT.failed
    await whileTelling('ending the sandbox', terminal, () =>
      forgetSandbox(stateDir, { keep: flags.volumes ? [] : [VOLUMES] }),
    )
    if (flags.json) terminal.printJson({ version: 1, id, removed: true })
    else terminal.print(`${id}: removed`)
    return EXIT.ok
  },
})
