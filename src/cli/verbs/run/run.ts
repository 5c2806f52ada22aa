import { EXIT } from '../../../base/error.ts'
import { prepare } from '../../../run/prepare.ts'
import { runSandbox } from '../../../run/run-sandbox.ts'
import { debugFlag } from '../../frame/flag-spec.ts'
import { policyFlags, runOptions } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'run',
  summary: 'Run a command in a sandbox of this project',
  details:
    "Without a command, pen opens a shell. The command can read the project and the system's programs, write only the project, and connect only to allowed hosts. Exit codes: the command's own; 124 on timeout; 125 if pen failed; 126 and 127 as in a shell; 128+n after signal n.",
  flags: {
    ...policyFlags,
    ...debugFlag,
    learn: { kind: 'boolean', about: 'at the end, show which hosts the command needed; allows nothing' },
    'dry-run-policy': { kind: 'boolean', about: 'print the merged policy and the plan; run nothing' },
  },
  command: 'optional',
  examples: {
    'pen run -- npm test': 'run the tests without access to your other files',
    'pen run': 'open a shell',
    'pen run --allow registry.example.com:443 -- npm ci': 'allow one host',
    'pen run --profile strict --wall 2m -- ./untrusted':
      'read the project, write ./output, stop after two minutes',
    'pen run --ask --learn -- npm ci': 'ask for each connection, then show what to allow permanently',
    'pen run --limit memory=1GiB --limit pids=64 -- make -j4': 'set tighter limits',
  },
  async run({ flags, command, env, terminal, answer }) {
    const request = { command, env, ...runOptions(flags) }
    if (flags['dry-run-policy']) {
      const { showPlan } = await import('./plan.ts')
      showPlan(await prepare(request), answer)
      return EXIT.ok
    }
    const code = await runSandbox({ ...request, tell: line => terminal.note(`pen: ${line}`) })
    if (flags.learn) await (await import('../../frame/suggestion.ts')).noteLearned(terminal)
    return code
  },
})
