import { launch } from '../../../run/launch.ts'
import { prepare } from '../../../run/prepare.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'run',
  summary: 'Run a command in a sandbox of the current project; a shell when none is given',
  details:
    "The sandbox sees the project and the system's programs, writes only the project, and has no network but what is allowed. Exit codes: the command's own; 124 when the wall time was over; 125 when pen itself failed; 126 and 127 as a shell; 128+n after signal n.",
  flags: {
    ...policyFlags,
    ...jsonFlag,
    learn: {
      kind: 'boolean',
      about: 'at the end, show what the command would need of the network; opens nothing by itself',
    },
    'dry-run-policy': { kind: 'boolean', about: 'print the merged policy and the plan, and run nothing' },
  },
  command: 'optional',
  examples: [
    { line: 'pen run -- npm test', does: 'the tests, with no way to the rest of your files' },
    { line: 'pen run', does: 'a shell' },
    { line: 'pen run --allow registry.example.com:443 -- npm ci', does: 'with one host open' },
    {
      line: 'pen run --profile strict --wall 2m -- ./untrusted',
      does: 'reads the project, writes ./output, two minutes',
    },
    { line: 'pen run --ask --learn -- npm ci', does: 'asks as it goes, and shows what to allow for good' },
    { line: 'pen run --limit memory=1GiB --limit pids=64 -- make -j4', does: 'with tighter limits' },
  ],
  async run({ flags, command, env, terminal }) {
    const prepared = await prepare({
      command,
      env,
      allowUserExpansion: flags['allow-user-expansion'],
      offline: flags.offline,
      toRun: !flags['dry-run-policy'],
      flags: project => flagDocument(flags, project),
    })
    if (flags['dry-run-policy']) {
      const { showPlan } = await import('./plan.ts')
      return showPlan(prepared, flags.json, terminal)
    }
    const code = await launch(prepared, { env, tell: line => terminal.note(`pen: ${line}`) })
    if (flags.learn) await (await import('../../frame/suggestion.ts')).noteLearned(terminal)
    return code
  },
})
