import { EXIT } from '../../../base/error.ts'
import { findProject } from '../../../config/project.ts'
import { readProposal } from '../../../config/proposal.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { proposalData, proposalText } from '../../render/difference-text.ts'

export const verb = defineVerb({
  name: 'config diff',
  summary: "Show what the project's .pen/ would change",
  details:
    'Compares meaning, not text, and marks what widens permissions. Exit code 0 if equal, 1 if different. Use the digest with pen config apply --yes --expect.',
  flags: jsonFlag,
  examples: [
    { line: 'pen config diff', does: 'show what pen config apply would change' },
    { line: 'pen config diff --json', does: 'print JSON' },
  ],
  async run({ flags, terminal }) {
    const proposal = await readProposal(findProject())
    const data = proposalData(proposal)
    if (flags.json) terminal.printJson(data)
    else if (data.same) terminal.print("the project's .pen/ is already active")
    else terminal.print(proposalText(proposal, terminal.paint))
    return data.same ? EXIT.ok : EXIT.failed
  },
})
