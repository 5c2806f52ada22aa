import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'exec',
  summary: 'Run a command in the sandbox of this project, which is started when it does not run',
  details:
    "On a terminal the command has one of its own. Otherwise stdin, stdout and stderr are three streams as usual. It runs in the directory that you are in, with the sandbox's own variables. There is no time limit but what you ask for with --timeout, at most exec.ceiling of the policy. Exit codes: the command's own; 124 when its time was over; 125 when pen itself failed; 126 and 127 as a shell; 128+n after signal n.",
  flags: defineFlags({
    ...jsonFlag,
    interactive: {
      kind: 'boolean',
      short: 'i',
      about: 'pass stdin on, also when it is a terminal and the command has none',
    },
    tty: { kind: 'boolean', short: 't', about: 'give the command a terminal, also in a pipeline' },
    env: { kind: 'list', value: 'NAME[=VALUE]', about: "set a variable, or pass on the host's" },
    cwd: { kind: 'string', value: 'PATH', about: 'run it there' },
    timeout: { kind: 'duration', value: 'TIME', about: 'end it, and all that it started, after this long' },
  }),
  command: 'required',
  examples: [
    { line: 'pen exec -- npm test', does: 'the tests, in the sandbox that stays' },
    { line: 'pen exec -- git log --oneline | head', does: 'in a pipeline' },
    { line: 'pen exec --cwd packages/api --env CI=1 -- make check', does: 'elsewhere, with a variable' },
    { line: 'pen exec --timeout 90s -- ./flaky', does: 'not longer than that' },
  ],
  async run({ flags, command, env, terminal }) {
    const { findProject } = await import('../../../config/project.ts')
    const { execInside } = await import('../../frame/exec-inside.ts')
    return await execInside({
      project: findProject(),
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
