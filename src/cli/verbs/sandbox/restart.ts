import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { findProject } from '../../../config/project.ts'
import { withChangeLock } from '../../../control/state.ts'
import { orderForRestart } from '../../../control/stored-order.ts'
import { mergeOrders, type SupervisorOrder } from '../../../control/supervisor-order.ts'
import { startUnlessRunning } from '../../../lifecycle/start.ts'
import { pauseSandbox } from '../../../lifecycle/stop.ts'
import { agentFlag } from '../../frame/agent-flag.ts'
import { debugFlag, defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { withProgress } from '../../frame/progress.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'restart',
  summary: "Restart this project's sandbox with the current config",
  details:
    'The sandbox keeps its flags and adds new ones; pen stop clears them. Volumes stay; running commands end.',
  flags: defineFlags({ ...policyFlags, ...agentFlag, ...jsonFlag, ...debugFlag }),
  examples: [
    { line: 'pen restart', does: 'apply a change of mounts, limits or files' },
    { line: 'pen restart --read ~/reference', does: 'add one flag' },
    { line: 'pen restart --agent codex', does: 'add what pen agent codex needs' },
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
    const restart = async (): Promise<void> => {
      const before = await orderForRestart(stateDir)
      // Throws before anything is stopped.
      const asked = before === undefined ? given : mergeOrders(before, given)
      await pauseSandbox(stateDir, line => say(printable(line, 1024)))
      await startUnlessRunning(project, { asked, say })
    }
    await withProgress('restarting the sandbox', terminal, () => withChangeLock(stateDir, restart))
    if (flags.json) terminal.printJson({ version: 1, id, started: true })
    else terminal.print(`${id}: restarted`)
    return EXIT.ok
  },
})
