import { printable } from '../../../base/printable.ts'
import { withChangeLock } from '../../../control/state.ts'
import { orderForRestart } from '../../../control/stored-order.ts'
import { mergeOrders } from '../../../control/supervisor-order.ts'
import { startUnlessRunning } from '../../../lifecycle/start.ts'
import { pauseSandbox } from '../../../lifecycle/stop.ts'
import { withProgress } from '../../frame/progress.ts'
import { orderOf, startFlags } from '../../frame/start-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'restart',
  summary: "Restart this project's sandbox with the current config",
  details:
    'The sandbox keeps its flags and adds new ones; pen stop clears them. Volumes stay; running commands end.',
  flags: startFlags,
  examples: {
    'pen restart': 'apply a change of mounts, limits or files',
    'pen restart --read ~/reference': 'add one flag',
    'pen restart --agent codex': 'add what pen agent codex needs',
  },
  async run({ flags, terminal, project, answer }) {
    const { id, stateDir } = project
    const given = orderOf(flags, project)
    const say = (line: string): void => terminal.note(`pen: ${line}`)
    const restart = async (): Promise<void> => {
      const before = await orderForRestart(stateDir)
      // Throws before anything is stopped.
      const asked = before === undefined ? given : mergeOrders(before, given)
      await pauseSandbox(stateDir, line => say(printable(line, 1024)))
      await startUnlessRunning(project, { asked, say })
    }
    await withProgress('restarting the sandbox', terminal, () => withChangeLock(stateDir, restart))
    answer({ version: 1, id, started: true }, `${id}: restarted`)
  },
})
