import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import type { Proposal } from '../../../config/proposal.ts'
import { applyProposal, readProposal } from '../../../config/proposal.ts'
import { askAbout, confirmationFlags, expectedDigest } from '../../frame/ask.ts'
import { defineVerb } from '../../frame/verb.ts'
import { proposalData, proposalText } from '../../render/difference-text.ts'

export const verb = defineVerb({
  name: 'config apply',
  summary: "Apply the project's .pen/ after you confirm it",
  details:
    'Anyone who can write the project can write .pen/, so it never applies by itself. Changes that widen permissions are marked. pen applies exactly what it showed. Running sandboxes apply network changes within a second. Text lists in .pen/ are merged into the live config.json; your live text lists stay. Without a terminal use --yes --expect DIGEST. Exit code 1 if not applied.',
  flags: {
    ...confirmationFlags('pen config diff'),
  },
  examples: {
    'pen config apply': 'show the changes and ask',
    'pen config apply --yes --expect sha256:…': 'apply what pen config diff showed, or nothing',
  },
  async run({ flags, terminal, project, answer }) {
    const expected = expectedDigest(flags, 'pen config apply', 'pen config diff')
    const proposal = await readProposal(project)
    const data = proposalData(proposal)
    if (expected !== undefined) requireExpected(proposal, expected)
    const report = (applied: boolean, line: string): ExitCode => {
      answer({ applied, ...data }, line)
      return applied || data.same ? EXIT.ok : EXIT.failed
    }
    if (data.same) return report(false, "nothing to apply: the project's .pen/ is already active")
    if (!flags.json) terminal.print(proposalText(proposal, terminal.paint))
    if (expected === undefined) {
      const { digest } = proposal
      const what = { done: 'applied', command: 'pen config apply', digest, json: flags.json }
      const why = askAbout('Apply this?', what, terminal)
      if (why !== undefined) return report(false, why)
    }
    await applyProposal(project, proposal)
    return report(true, `applied for ${printable(project.world.workspace)}`)
  },
})

function requireExpected({ digest }: Proposal, expected: string): void {
  if (digest === expected) return
  throw new PenError('CONFIG_VALUE', {
    what: 'the config changed since it was shown',
    at: '--expect',
    hint: 'pen config diff',
  })
}
