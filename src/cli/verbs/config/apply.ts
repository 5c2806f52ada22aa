import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { findProject } from '../../../config/project.ts'
import type { Proposal } from '../../../config/proposal.ts'
import { applyProposal, readProposal } from '../../../config/proposal.ts'
import { agrees, canAsk } from '../../frame/ask.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { proposalData, proposalText } from '../../render/difference-text.ts'

export const verb = defineVerb({
  name: 'config apply',
  summary: "Apply the project's .pen/ after you confirm it",
  details:
    'Whoever can write the project can write its .pen/: nothing in it takes effect by itself. Every change that lets a sandbox do more is marked. What is put in force is what was shown, also when the files change meanwhile; a sandbox that runs takes up what concerns its network within a second. Text lists in .pen/ become a part of the live config.json; text lists that you keep beside that one stay. Without a terminal nobody is asked: then --yes needs the digest of what was shown. Exit code 1 when it was not applied.',
  flags: {
    yes: { kind: 'boolean', about: 'do not ask; only together with --expect' },
    expect: { kind: 'string', value: 'sha256:…', about: 'the digest that pen config diff printed' },
    ...jsonFlag,
  },
  examples: [
    { line: 'pen config apply', does: 'shows the difference and asks' },
    {
      line: 'pen config apply --yes --expect sha256:…',
      does: 'applies what pen config diff showed, or nothing',
    },
  ],
  async run({ flags, terminal }) {
    const expected = checkExpectation(flags)
    const project = findProject()
    const proposal = await readProposal(project)
    const data = proposalData(proposal)
    if (expected !== undefined) requireExpected(proposal, expected)
    const tell = (applied: boolean, line: string): ExitCode => {
      if (flags.json) terminal.printJson({ applied, ...data })
      else terminal.print(line)
      return applied || data.same ? EXIT.ok : EXIT.failed
    }
    if (data.same) return tell(false, 'nothing to apply: the .pen/ of the project is what is in force')
    if (!flags.json) terminal.print(proposalText(proposal, terminal.paint))
    if (expected === undefined) {
      if (flags.json || !(await canAsk()))
        return tell(
          false,
          `not applied: there is nobody to ask. After reading it: pen config apply --yes --expect ${proposal.digest}`,
        )
      if (!agrees('Put this in force?', terminal)) return tell(false, 'not applied')
    }
    await applyProposal(project, proposal)
    return tell(true, `applied for ${printable(project.world.workspace)}`)
  },
})

function checkExpectation(flags: { readonly yes: boolean; readonly expect: string | undefined }) {
  if (flags.yes !== (flags.expect !== undefined))
    throw new PenError('USAGE', {
      what: flags.yes ? '--yes needs to know what you have seen' : '--expect is for --yes',
      at: flags.yes ? '--yes' : '--expect',
      hint: 'write pen config apply --yes --expect sha256:…, with the digest that pen config diff printed',
    })
  if (flags.expect !== undefined && !/^sha256:[0-9a-f]{64}$/.test(flags.expect))
    throw new PenError('USAGE', {
      what: 'this is no digest',
      at: '--expect',
      hint: 'copy the last line of pen config diff, "sha256:" and 64 digits',
    })
  return flags.expect
}

function requireExpected({ digest }: Proposal, expected: string): void {
  if (digest === expected) return
  throw new PenError('CONFIG_VALUE', {
    what: 'the configuration is not the one that was shown: it, or the live one, has changed since',
    at: '--expect',
    hint: 'look again with pen config diff',
  })
}
