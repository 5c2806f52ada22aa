import { EXIT } from '../../../base/error.ts'
import type { Started } from '../../../lifecycle/start.ts'
import { agentFlag } from '../../frame/agent-flag.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

const SAID: Readonly<Record<Started, string>> = {
  started: 'started',
  again: 'started again',
  already: 'already running',
}

export const verb = defineVerb({
  name: 'start',
  summary: 'Start the sandbox of this project and leave it running; on a terminal, open a shell in it',
  details:
    'It stays until pen stop, a limit or the end of the machine, and is entered by pen exec and pen shell as often as you like. One that runs already is joined. Its flags hold until pen stop: one that ended in another way comes back with them, and new flags come on top. Changes of the allowed hosts take effect at once; all else takes pen restart.',
  flags: defineFlags({
    ...policyFlags,
    ...agentFlag,
    ...jsonFlag,
    detach: { kind: 'boolean', about: 'open no shell' },
  }),
  examples: [
    {
      line: 'pen start',
      does: 'a shell in the sandbox of this project, which stays when you leave the shell',
    },
    { line: 'pen start --detach', does: 'without a shell' },
    { line: 'pen start --agent codex', does: 'one in which pen agent codex then runs, beside all else' },
    { line: 'pen start --detach --limit memory=8GiB', does: 'with another limit, until it is stopped' },
  ],
  async run({ flags, env, terminal }) {
    const { takeSpare } = await import('../../../lifecycle/spare-supervisor.ts')
    const spare = takeSpare()
    const { findProject } = await import('../../../config/project.ts')
    const { startSandbox } = await import('../../../lifecycle/start.ts')
    const { whileTelling } = await import('../../frame/progress.ts')
    const { isTerminal } = await import('../../../terminal/modes.ts')
    const project = findProject()
    const document = flagDocument(flags, project)
    const order = {
      id: project.id,
      flags: document,
      offline: flags.offline,
      allowUserExpansion: flags['allow-user-expansion'],
      ...(flags.agent !== undefined && { agent: flags.agent }),
    }
    const say = (line: string): void => terminal.note(`pen: ${line}`)
    const came = await whileTelling('starting the sandbox', terminal, () =>
      startSandbox(project, { asked: order, say, spare }),
    )
    const { runsBy } = await import('../../../control/client.ts')
    const { isPlain } = await import('../../../control/supervisor-order.ts')
    if (came === 'already' && !isPlain(order) && !(await runsBy(project.stateDir, order)))
      terminal.note('pen: it runs already, and not by these flags: pen restart takes them')
    if (flags.json) terminal.printJson({ version: 1, id: project.id, started: came !== 'already' })
    else if (!flags.detach && isTerminal(0) && isTerminal(1)) {
      const { execInside } = await import('../../frame/exec-inside.ts')
      return await execInside({ project, command: [], env, terminal })
    } else terminal.print(`${project.id}: ${SAID[came]}`)
    return EXIT.ok
  },
})
