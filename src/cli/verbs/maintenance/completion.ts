import { PenError } from '../../../base/error.ts'
import { nearest } from '../../../base/nearest.ts'
import { ownProgram } from '../../../base/own-program.ts'
import { SCRIPTS, SHELLS } from '../../completion/scripts.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'completion',
  summary: 'Print the completion script for your shell',
  details:
    "The script calls this pen binary by its path. It only reads. In bash, a command after -- uses that command's own completion if bash-completion is loaded.",
  flags: {},
  positionals: { shell: { arity: 'one', about: SHELLS.join(', ') } },
  json: false,
  examples: {
    'pen completion bash': 'in ~/.bashrc: source <(pen completion bash)',
    'pen completion zsh': 'in ~/.zshrc, after compinit: source <(pen completion zsh)',
    'pen completion fish': 'save it as ~/.config/fish/completions/pen.fish',
  },
  insideSandbox: 'allow',
  async run({ positionals, terminal }) {
    const { shell } = positionals
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
    if (script === undefined) {
      const meant = nearest(shell, SHELLS)
      throw new PenError('USAGE', {
        what: `unknown shell "${shell}"`,
        hint:
          meant === undefined
            ? `choose one of ${SHELLS.join(', ')}`
            : `did you mean pen completion ${meant}?`,
      })
    }
    terminal.print(script(ownProgram()))
  },
})
