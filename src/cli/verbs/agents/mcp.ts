import { realpathSync } from 'node:fs'
import { version } from '../../../../package.json'
import { PenError } from '../../../base/error.ts'
import { ownProgram } from '../../../base/own-program.ts'
import { type Bound, chooseRoot } from '../../../config/choose-root.ts'
import { findProject, type Project } from '../../../config/project.ts'
import { type HostPath, isWithin } from '../../../policy/files/path.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

const { 'allow-user-expansion': _expansion, ...startFlags } = policyFlags

export const verb = defineVerb({
  name: 'mcp',
  summary: "Serve a project's sandbox to an MCP client over stdio",
  details:
    'For MCP clients; docs/mcp.md has the settings. The model gets tools to run commands, work with files, and request permissions, all inside the sandbox. The first tool call starts the sandbox; it ends with the client. A sandbox that is already running is joined and kept.',
  flags: {
    ...startFlags,
    project: { kind: 'string', value: 'PATH', about: 'project directory (default: current)' },
  },
  json: false,
  examples: {
    'pen mcp --project ~/src/app': 'command for an MCP client',
    'pen mcp --project ~/src/app --group npm --ask': 'allow npm, and ask in pen watch',
  },
  async run({ flags, name }) {
    const { serveMcp } = await import('../../../mcp/serve.ts')
    const [pen] = ownProgram()
    const bound = boundOf(flags.project)
    await serveMcp({
      version,
      start(roots) {
        const project = projectWithin(bound, roots)
        return {
          project: project.world.workspace,
          name,
          policy: flagDocument({ ...flags, 'allow-user-expansion': false }, project),
          offline: flags.offline,
          pen,
        }
      },
    })
  },
})

interface StartDirectory extends Bound {
  /** The base of relative paths in flags. */
  readonly cwd: HostPath
}

/** Fails if --project is no project. Without it, a client may start pen anywhere and name roots later. */
function boundOf(named: string | undefined): StartDirectory {
  try {
    const { world, cwd } = findProject(named)
    return { directory: world.workspace, cwd, named: named !== undefined }
  } catch (error) {
    if (named !== undefined) throw error
    const here = realpathSync('.') as HostPath
    return { directory: here, cwd: here, named: false }
  }
}

function projectWithin(bound: StartDirectory, roots: readonly string[]): Project {
  const project = findProject(chooseRoot(bound, roots))
  // A sandbox may have replaced the directory by a link.
  if (!isWithin(project.world.workspace, bound.directory))
    throw new PenError('STATE', {
      what: `${project.world.workspace} is not in ${bound.directory}`,
      hint: "pen mcp --project PATH, in the client's settings",
    })
  return { ...project, cwd: bound.cwd }
}
