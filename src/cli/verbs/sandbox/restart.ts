import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { findProject } from '../../../config/project.ts'
import { runningOrder } from '../../../control/running-order.ts'
import { whileChanging } from '../../../control/state.ts'
import { onTop, type SupervisorOrder } from '../../../control/supervisor-order.ts'
import { startUnlessRunning } from '../../../lifecycle/start.ts'
import { pauseSandbox } from '../../../lifecycle/stop.ts'
import { agentFlag } from '../../frame/agent-flag.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { whileTelling } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'restart',
  summary: 'End the sandbox of this project and start it anew, with the configuration as it is now',
  details:
    'The flags that it was started with hold, and new ones come on top; pen stop drops them. Volumes are kept; commands in it are ended.',
  flags: defineFlags({ ...policyFlags, ...agentFlag, ...jsonFlag }),
  examples: [
    { line: 'pen restart', does: 'after a change of mounts, limits or files' },
    { line: 'pen restart --read ~/reference', does: 'with one flag more than before' },
    { line: 'pen restart --agent codex', does: 'as before, and with what pen agent codex needs' },
  ],
  async run({ flags, terminal }) {
    const project = findProject()
    const { id, stateDir } = project
    const given: SupervisorOrder = {
      id,
      flags: flagDocument(flags, project),
      offline: flags.offline,
      allowUserExpansion: flags['allow-user-expansion'],
      ...(flags.agent !== undefined && { agent: flags.agent }),
    }
    const say = (line: string): void => terminal.note(`pen: ${line}`)
    const startAnew = async (): Promise<void> => {
      const before = await runningOrder(stateDir)
      await pauseSandbox(stateDir, line => say(printable(line, 1024)))
      await startUnlessRunning(project, { asked: before === undefined ? given : onTop(before, given), say })
    }
    await whileTelling('ending the sandbox and starting it anew', terminal, () =>
      whileChanging(stateDir, startAnew),
    )
    if (flags.json) terminal.printJson({ version: 1, id, started: true })
    else terminal.print(`${id}: started anew`)
    return EXIT.ok
  },
})
