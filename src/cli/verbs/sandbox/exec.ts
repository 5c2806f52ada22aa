import { currentDirectory } from '../../../config/project.ts'
import { execInside } from '../../frame/exec-inside.ts'
import { debugFlag } from '../../frame/flag-spec.ts'
import { projectFor } from '../../frame/sandbox-name.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'exec',
  summary: "Run a command in this project's sandbox",
  details:
    "Starts the sandbox if it is not running. On a terminal the command gets its own terminal; otherwise stdin, stdout and stderr stay separate. It runs in your current directory with the sandbox's variables. No timeout unless you set --timeout (at most exec.ceiling). Exit codes: the command's own; 124 on timeout; 125 if pen failed; 126 and 127 as in a shell; 128+n after signal n.",
  flags: {
    ...debugFlag,
    interactive: {
      kind: 'boolean',
      short: 'i',
      about: 'pass stdin, even without a terminal for the command',
    },
    tty: { kind: 'boolean', short: 't', about: 'give the command a terminal, even in a pipeline' },
    env: { kind: 'list', value: 'NAME[=VALUE]', about: "set a variable, or pass the host's value" },
    cwd: { kind: 'string', value: 'PATH', about: 'working directory' },
    project: { kind: 'string', value: 'PATH', about: 'project directory (default: current)' },
    timeout: { kind: 'duration', value: 'TIME', about: 'kill the command and its children after this time' },
  },
  command: 'required',
  examples: {
    'pen exec -- npm test': 'run the tests',
    'pen exec -- git log --oneline | head': 'in a pipeline',
    'pen exec --cwd packages/api --env CI=1 -- make check': 'in another directory, with a variable',
    'pen exec --timeout 90s -- ./flaky': 'with a timeout',
  },
  async run(invocation) {
    const { flags, command, env, terminal, name } = invocation
    return await execInside({
      project:
        flags.project === undefined
          ? invocation.project
          : { ...projectFor('exec', name, flags.project), cwd: currentDirectory() },
      command,
      env,
      terminal,
      variables: flags.env,
      cwd: flags.cwd,
      timeout: flags.timeout,
      interactive: flags.interactive,
      ...(flags.tty && { tty: true }),
    })
  },
})
