import { EXIT } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import type { KeepOrder } from '../sandbox/keep-order.ts'
import { agentFlag } from './agent-flag.ts'
import { defineFlags, jsonFlag } from './flag-spec.ts'
import { flagDocument, policyFlags } from './policy-flags.ts'
import { defineVerb } from './verb.ts'

export const verb = defineVerb({
  name: 'restart',
  summary: 'End the sandbox of this project and start it anew, with the configuration as it is now',
  details:
    'Without flags it is started with those that it was started with before, and with --agent alone with those as well. Volumes are kept; commands in it are ended.',
  flags: defineFlags({ ...policyFlags, ...agentFlag, ...jsonFlag }),
  examples: [
    { line: 'pen restart', does: 'after a change of mounts, limits or files' },
    { line: 'pen restart --read ~/reference', does: 'with other flags than before' },
    { line: 'pen restart --agent codex', does: 'as before, and with what pen agent codex needs' },
  ],
  async run({ flags, terminal }) {
    const { findProject } = await import('../config/project.ts')
    const { startUnlessKept } = await import('../sandbox/start-keeper.ts')
    const { stopSandbox } = await import('../sandbox/stop-keeper.ts')
    const { whileChanging } = await import('../sandbox/store.ts')
    const { whileTelling } = await import('./progress.ts')
    const { askForOrder } = await import('../sandbox/control-client.ts')
    const project = findProject()
    const { id, stateDir } = project
    const given: KeepOrder = {
      id,
      flags: flagDocument(flags, project),
      offline: flags.offline,
      allowUserExpansion: flags['allow-user-expansion'],
    }
    const isGiven = Object.keys(given.flags).length > 0 || given.offline || given.allowUserExpansion
    const startAnew = async (): Promise<void> => {
      const order = isGiven ? given : ((await askForOrder(stateDir)) ?? given)
      const { agent = order.agent } = flags
      await stopSandbox(stateDir, line => terminal.note(`pen: ${printable(line, 1024)}`))
      await startUnlessKept(project, { ...order, ...(agent !== undefined && { agent }) }, line =>
        terminal.note(`pen: ${line}`),
      )
    }
    await whileTelling('ending the sandbox and starting it anew', terminal, () =>
      whileChanging(stateDir, startAnew),
    )
    if (flags.json) terminal.printJson({ version: 1, id, started: true })
    else terminal.print(`${id}: started anew`)
    return EXIT.ok
  },
})
