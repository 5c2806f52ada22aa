import { EXIT } from '../base/error.ts'
import { ownProgram } from '../base/own-program.ts'
import { defineFlags } from './flag-spec.ts'
import { flagDocument, policyFlags } from './policy-flags.ts'
import { defineVerb } from './verb.ts'

const { 'allow-user-expansion': _expansion, ...startFlags } = policyFlags

export const verb = defineVerb({
  name: 'mcp',
  summary: 'Serve the sandbox of a project to an MCP client, over stdin and stdout',
  details:
    'For a client that starts its servers itself: see docs/mcp.md for what to write into its settings. A model gets tools to run commands, to read, write, list and search files, and to ask you for a permission, all inside the sandbox. The sandbox is started by the first tool that is used and ends with the client; one that runs already is joined, and left running.',
  flags: defineFlags({
    ...startFlags,
    project: { kind: 'string', value: 'PATH', about: 'the project; without it, the current directory' },
  }),
  examples: [
    { line: 'pen mcp --project ~/src/app', does: 'what an MCP client is told to start' },
    {
      line: 'pen mcp --project ~/src/app --group npm --ask',
      does: 'with more, and with questions to pen watch',
    },
  ],
  async run({ flags }) {
    const { findProject } = await import('../config/project.ts')
    const { serveMcp } = await import('../mcp/serve.ts')
    const { version } = await import('../../package.json')
    const project = findProject(flags.project)
    const [pen] = ownProgram()
    await serveMcp({
      project: project.world.workspace,
      policy: flagDocument({ ...flags, 'allow-user-expansion': false }, project),
      offline: flags.offline,
      pen,
      version,
    })
    return EXIT.ok
  },
})
