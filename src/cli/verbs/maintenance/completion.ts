import { PenError } from '../../../base/error.ts'
import { nearest } from '../../../base/nearest.ts'
import { ownProgram } from '../../../base/own-program.ts'
import { SHELLS } from '../../completion/values.ts'
import { defineVerb } from '../../frame/verb.ts'

const SCRIPTS = {
  bash: () => import('../../completion/bash.ts'),
  zsh: () => import('../../completion/zsh.ts'),
  fish: () => import('../../completion/fish.ts'),
} as const satisfies Record<(typeof SHELLS)[number], () => Promise<{ script: (program: string) => string }>>

export const verb = defineVerb({
  name: 'completion',
  summary: 'Print the completion script for your shell',
  details:
    "The script calls this pen binary by its path. It only reads. In bash, a command after -- uses that command's own completion if bash-completion is loaded.",
  flags: {},
  positionals: { shell: { arity: 'one', about: SHELLS.join(', ') } },
  json: false,
  examples: [
    { line: 'pen completion bash', does: 'in ~/.bashrc: source <(pen completion bash)' },
    { line: 'pen completion zsh', does: 'in ~/.zshrc, after compinit: source <(pen completion zsh)' },
    { line: 'pen completion fish', does: 'save it as ~/.config/fish/completions/pen.fish' },
  ],
  insideSandbox: 'allow',
  async run({ positionals, terminal }) {
    const shell = SHELLS.find(name => name === positionals.shell)
    if (shell === undefined) {
      const meant = nearest(positionals.shell, SHELLS)
      throw new PenError('USAGE', {
        what: `unknown shell "${positionals.shell}"`,
        hint:
          meant === undefined
            ? `choose one of ${SHELLS.join(', ')}`
            : `did you mean pen completion ${meant}?`,
      })
    }
    const { script } = await SCRIPTS[shell]()
    terminal.print(script(ownProgram().map(quote[shell]).join(' ')))
  },
})

const posix = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
/** Quotes the path of pen as one word. */
const quote = {
  bash: posix,
  zsh: posix,
  fish: (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
} as const
