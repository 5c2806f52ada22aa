import { EXIT } from '../../../base/error.ts'
import { prepare } from '../../../run/prepare.ts'
import { runSandbox } from '../../../run/run-sandbox.ts'
import { debugFlag, defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { loadOptions, policyFlags } from '../../frame/policy-flags.ts'
import { nameFlag } from '../../frame/sandbox-name.ts'
import { defineVerb } from '../../frame/verb.ts'

const runFlags = defineFlags({
  ...policyFlags,
  ...debugFlag,
  learn: { kind: 'boolean', about: 'at the end, show which hosts the command needed; allows nothing' },
  'dry-run-policy': { kind: 'boolean', about: 'print the merged policy and the plan; run nothing' },
  parallel: {
    kind: 'count',
    value: 'N',
    about: 'run it in N named sandboxes at once, and show the N results',
  },
})

export const verb = defineVerb({
  name: 'run',
  summary: 'Run a command in a sandbox of this project',
  details:
    "Without a command, pen opens a shell. The command can read the project and the system's programs, write only the project, and connect only to allowed hosts. Exit codes: the command's own; 124 on timeout; 125 if pen failed; 126 and 127 as in a shell; 128+n after signal n.",
  flags: runFlags,
  command: 'optional',
  examples: {
    'pen run -- npm test': 'run the tests without access to your other files',
    'pen run': 'open a shell',
    'pen run --allow registry.example.com:443 -- npm ci': 'allow one host',
    'pen run --profile strict --wall 2m -- ./untrusted':
      'read the project, write ./output, stop after two minutes',
    'pen run --ask --learn -- npm ci': 'ask for each connection, then show what to allow permanently',
    'pen run --parallel 3 --name try -- npm test': 'in the sandboxes try-1, try-2 and try-3 at once',
    'pen run --limit memory=1GiB --limit pids=64 -- make -j4': 'set tighter limits',
  },
  async run(invocation) {
    const { flags, command, env, terminal, project, answer } = invocation
    if (flags.parallel !== undefined && !flags['dry-run-policy']) {
      const { runParallel } = await import('./parallel.ts')
      const specs = { ...runFlags, ...nameFlag, ...jsonFlag }
      return await runParallel({ ...invocation, project, count: flags.parallel, flags: specs })
    }
    const request = { project, command, env, ...loadOptions(flags, project) }
    if (flags['dry-run-policy']) {
      const { showPlan } = await import('./plan.ts')
      showPlan(await prepare(request), answer)
      return EXIT.ok
    }
    const code = await runSandbox({ ...request, tell: line => terminal.note(`pen: ${line}`) })
    if (flags.learn) await (await import('../../frame/suggestion.ts')).noteLearned(project, terminal)
    return code
  },
})
