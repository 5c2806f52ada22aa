import { restartSandbox } from '../../../lifecycle/restart.ts'
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
    const { id } = project
    const given = orderOf(flags, project)
    const say = (line: string): void => terminal.note(`pen: ${line}`)
    await withProgress('restarting the sandbox', terminal, () => restartSandbox(project, { given, say }))
    answer({ version: 1, id, started: true }, `${id}: restarted`)
  },
})
