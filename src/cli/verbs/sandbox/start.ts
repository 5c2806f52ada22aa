import { EXIT } from '../../../base/error.ts'
import { isRunningWith } from '../../../control/client.ts'
import { hasNoFlags } from '../../../control/supervisor-order.ts'
import { takeSpare } from '../../../lifecycle/spare-supervisor.ts'
import { type Started, startSandbox } from '../../../lifecycle/start.ts'
import { isTerminal } from '../../../terminal/termios.ts'
import { execInside } from '../../frame/exec-inside.ts'
import { withProgress } from '../../frame/progress.ts'
import { orderOf, startFlags } from '../../frame/start-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

const RESULT: Readonly<Record<Started, string>> = {
  started: 'started',
  again: 'started again',
  already: 'already running',
}

export const verb = defineVerb({
  name: 'start',
  summary: "Start this project's sandbox and keep it running",
  details:
    'On a terminal, pen opens a shell in it. The sandbox runs until pen stop, a limit or a reboot. Enter it with pen exec and pen shell. If it is already running, pen joins it. Its flags stay until pen stop, also after a crash; new flags are added. Changes to allowed hosts apply at once; other changes need pen restart.',
  flags: {
    ...startFlags,
    detach: { kind: 'boolean', about: 'do not open a shell' },
  },
  examples: {
    'pen start': 'open a shell; the sandbox keeps running when you leave it',
    'pen start --detach': 'without a shell',
    'pen start --agent codex': 'prepare the sandbox for pen agent codex',
    'pen start --detach --limit memory=8GiB': 'with another memory limit, until pen stop',
  },
  async run({ flags, env, terminal, project, answer }) {
    const spare = takeSpare()
    const order = orderOf(flags, project)
    const say = (line: string): void => terminal.note(`pen: ${line}`)
    const came = await withProgress('starting the sandbox', terminal, () =>
      startSandbox(project, { asked: order, say, spare }),
    )
    if (came === 'already' && !hasNoFlags(order) && !(await isRunningWith(project.stateDir, order)))
      terminal.note('pen: already running with other flags; fix: pen restart')
    if (!flags.json && !flags.detach && isTerminal(0) && isTerminal(1))
      return await execInside({ project, command: [], env, terminal })
    answer({ version: 1, id: project.id, started: came !== 'already' }, `${project.id}: ${RESULT[came]}`)
    return EXIT.ok
  },
})
