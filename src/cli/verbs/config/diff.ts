import { EXIT } from '../../../base/error.ts'
import { readProposal } from '../../../config/proposal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { proposalData, proposalText } from '../../render/difference-text.ts'

export const verb = defineVerb({
  name: 'config diff',
  summary: "Show what the project's .pen/ would change",
  details:
    'Compares meaning, not text, and marks what widens permissions. Exit code 0 if equal, 1 if different. Use the digest with pen config apply --yes --expect.',
  examples: {
    'pen config diff': 'show what pen config apply would change',
    'pen config diff --json': 'print JSON',
  },
  async run({ terminal, project, answer }) {
    const proposal = await readProposal(project)
    const data = proposalData(proposal)
    answer(data, data.same ? "the project's .pen/ is already active" : proposalText(proposal, terminal.paint))
    return data.same ? EXIT.ok : EXIT.failed
  },
})
