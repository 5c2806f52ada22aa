import { printable } from '../../../base/printable.ts'
import { withChangeLock } from '../../../control/state.ts'
import { isKnown } from '../../../lifecycle/forget.ts'
import { chosenSandbox } from '../../../lifecycle/list.ts'
import { stopSandbox } from '../../../lifecycle/stop.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'stop',
  summary: "Stop this project's sandbox and everything in it",
  details:
    'Commands get SIGTERM, then SIGKILL after a second. The project, its volumes and its config stay. pen prints what was refused, what git has only in the sandbox, and which files the host runs later. Does nothing if the sandbox is not running.',
  positionals: { id: { arity: 'optional', about: 'sandbox from pen ls (default: that of this project)' } },
  examples: {
    'pen stop': 'every process is gone when this returns',
    'pen stop api-1a2b3c4d5e6f7a8b': 'the sandbox of another project',
  },
  async run(invocation) {
    const { positionals, terminal, answer } = invocation
    const { id, stateDir } = await chosenSandbox(positionals.id, invocation)
    const say = (line: string): void => terminal.note(`pen: ${printable(line, 1024)}`)
    const came = isKnown(stateDir)
      ? await withProgress('stopping the sandbox', terminal, () =>
          withChangeLock(stateDir, () => stopSandbox(stateDir, say)),
        )
      : 'absent'
    answer(
      { version: 1, id, stopped: came === 'stopped' },
      `${id}: ${came === 'stopped' ? 'stopped' : 'not running'}`,
    )
  },
})
