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
    'Compares what the two mean, not their text. Exit code 0 when they are the same, 1 when they differ. The digest at the end is of every byte on both sides: pen config apply --yes --expect takes it.',
  flags: jsonFlag,
  examples: [
    { line: 'pen config diff', does: 'what pen config apply would put in force' },
    { line: 'pen config diff --json', does: 'for a program' },
  ],
  async run({ flags, terminal }) {
    const proposal = await readProposal(findProject())
    const data = proposalData(proposal)
    if (flags.json) terminal.printJson(data)
    else if (data.same) terminal.print('the .pen/ of the project is what is in force')
    else terminal.print(proposalText(proposal, terminal.paint))
    return data.same ? EXIT.ok : EXIT.failed
  },
})
