import { realpathSync } from 'node:fs'
import { EXIT, PenError } from '../../../base/error.ts'
import { ownProgram } from '../../../base/own-program.ts'
import { type Bound, chooseRoot } from '../../../config/choose-root.ts'
import { findProject, type Project } from '../../../config/project.ts'
import { type HostPath, isWithin } from '../../../policy/files/path.ts'
import { defineFlags } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

const { 'allow-user-expansion': _expansion, ...startFlags } = policyFlags

export const verb = defineVerb({
  name: 'mcp',
  summary: "Serve a project's sandbox to an MCP client over stdio",
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
    const { serveMcp } = await import('../../../mcp/serve.ts')
    const { version } = await import('../../../../package.json')
    const [pen] = ownProgram()
    const bound = boundOf(flags.project)
    await serveMcp({
      version,
      start(roots) {
        const project = projectWithin(bound, roots)
        return {
          project: project.world.workspace,
          policy: flagDocument({ ...flags, 'allow-user-expansion': false }, project),
          offline: flags.offline,
          pen,
        }
      },
    })
    return EXIT.ok
  },
})

interface Started extends Bound {
  /** What paths in flags are relative to. */
  readonly cwd: HostPath
}

/** What the user started pen with. A project that was named must be one; a client may start pen anywhere, and have roots. */
function boundOf(named: string | undefined): Started {
  try {
    const { world, cwd } = findProject(named)
    return { directory: world.workspace, cwd, named: named !== undefined }
  } catch (error) {
    if (named !== undefined) throw error
    const here = realpathSync('.') as HostPath
    return { directory: here, cwd: here, named: false }
  }
}

function projectWithin(bound: Started, roots: readonly string[]): Project {
  const project = findProject(chooseRoot(bound, roots))
  // A sandbox may have put a link there meanwhile.
  if (!isWithin(project.world.workspace, bound.directory))
    throw new PenError('STATE', {
      what: `${project.world.workspace} is not in ${bound.directory}`,
      hint: 'name the project in the settings of the client: pen mcp --project PATH',
    })
  return { ...project, cwd: bound.cwd }
}
