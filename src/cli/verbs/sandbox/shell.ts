import { execInside } from '../../frame/exec-inside.ts'
import { debugFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'shell',
  summary: "Open a shell in this project's sandbox",
  details: 'Starts the sandbox if it is not running. The sandbox keeps running when you leave the shell.',
  flags: { ...debugFlag },
  examples: {
    'pen shell': 'open a shell in the current directory',
  },
  async run({ env, terminal, project }) {
    return await execInside({ project, command: [], env, terminal })
  },
})
