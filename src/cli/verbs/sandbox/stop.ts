import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { whileChanging } from '../../../control/state.ts'
import { isKnown } from '../../../lifecycle/forget.ts'
import { sandboxNamed } from '../../../lifecycle/named-sandbox.ts'
import { stopSandbox } from '../../../lifecycle/stop.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { whileTelling } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'stop',
  summary: 'End the sandbox of this project and everything in it',
  details:
    'Commands are asked to end (SIGTERM), and are ended a second later. The project, its volumes and its configuration stay. What it refused is told, with what would allow it. When it does not run, nothing happens.',
  flags: jsonFlag,
  positionals: { name: { arity: 'optional', about: 'another one, as pen ls names it' } },
  examples: [
    { line: 'pen stop', does: 'when it returns, every process is gone' },
    { line: 'pen stop api-1a2b3c4d5e6f7a8b', does: 'that of another project' },
  ],
  async run({ flags, positionals, terminal }) {
    const { id, stateDir } = await sandboxNamed(positionals.name)
    const say = (line: string): void => terminal.note(`pen: ${printable(line, 1024)}`)
    const came = isKnown(stateDir)
      ? await whileTelling('ending the sandbox', terminal, () =>
          whileChanging(stateDir, () => stopSandbox(stateDir, say)),
        )
      : 'absent'
    if (flags.json) terminal.printJson({ version: 1, id, stopped: came === 'stopped' })
    else terminal.print(`${id}: ${came === 'stopped' ? 'stopped' : 'not running'}`)
    return EXIT.ok
  },
})
