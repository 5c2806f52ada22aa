import { type ExitCode, PenError } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { runOnTerminal } from '../../../base/spawn.ts'
import { makeSshHost } from '../../../ssh/ssh-host.ts'
import { ensureStarted } from '../../frame/exec-inside.ts'
import { projectFor } from '../../frame/sandbox-name.ts'
import { defineVerb } from '../../frame/verb.ts'

/** ssh itself failed, or a signal ended it. */
const SSH_FAILED = 255

export const verb = defineVerb({
  name: 'ssh',
  summary: 'Connect to the sandbox with your ssh',
  details:
    'Runs ssh of this machine with a config of its own; your ~/.ssh/config and keys are not used. Starts the sandbox if it is not running. No port is opened, and no SSH server runs inside. A shell begins in the project, a command in the home. Words after -- are for ssh: its flags, or a command. The exit code is that of ssh. For other programs that speak SSH, see pen ssh-config.',
  json: false,
  positionals: { sandbox: { arity: 'optional', about: 'a named sandbox of this project, as with --name' } },
  command: 'after-dashes',
  examples: {
    'pen ssh': 'open a shell in the project',
    'pen ssh fix-a': 'in the sandbox of this name',
    'pen ssh -- uname -a': 'run a command',
    'pen ssh -- -N -L 8080:localhost:3000': 'forward port 3000 of the sandbox, until Ctrl-C',
  },
  async run(invocation): Promise<ExitCode> {
    const { command, env, terminal, name } = invocation
    const { sandbox } = invocation.positionals
    if (sandbox !== undefined && name !== undefined)
      throw new PenError('USAGE', {
        what: 'two names of a sandbox',
        at: '--name',
        hint: 'remove one of them',
      })
    const project = sandbox === undefined ? invocation.project : projectFor('ssh', sandbox)
    const ssh = findTool('ssh')
    if (ssh === undefined)
      throw new PenError('MISSING_TOOL', {
        what: 'ssh is not installed, or not in a directory that only root can write',
        hint: 'install the package openssh-client',
      })
    const { host, config } = await makeSshHost(project)
    await ensureStarted(project, terminal)
    const { code } = await runOnTerminal([ssh, '-F', config, host, ...command], {
      env,
      cwd: project.cwd,
    })
    return code ?? SSH_FAILED
  },
})
