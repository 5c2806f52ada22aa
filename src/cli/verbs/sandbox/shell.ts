import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'shell',
  summary: 'Open a shell in the sandbox of this project, which is started when it does not run',
  details: 'Leaving the shell leaves the sandbox running; pen stop ends it.',
  flags: jsonFlag,
  examples: [{ line: 'pen shell', does: 'a shell in the directory that you are in' }],
  async run({ env, terminal }) {
    const { findProject } = await import('../../../config/project.ts')
    const { execInside } = await import('../../frame/exec-inside.ts')
    return await execInside({ project: findProject(), command: [], env, terminal })
  },
})
