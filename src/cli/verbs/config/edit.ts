import { EXIT, PenError } from '../../../base/error.ts'
import { runOnTerminal } from '../../../base/spawn.ts'
import { Draft } from '../../../config/draft.ts'
import { whileLocked } from '../../../config/edit.ts'
import { isTerminal } from '../../../terminal/termios.ts'
import { canAsk, confirm } from '../../frame/ask.ts'
import { reportText } from '../../frame/report.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config edit',
  summary: 'Edit the live config in your editor',
  details:
    'Opens a copy in $VISUAL or $EDITOR (default: vi). pen validates it before it replaces the config. On a mistake pen shows the place and, on a terminal, lets you continue editing. Exit code 1 if nothing was changed.',
  examples: {
    'pen config edit': 'edit the live config',
  },
  async run({ flags, env, terminal, project, answer }) {
    const editor = [env['VISUAL'], env['EDITOR']].find(word => word !== undefined && word !== '') ?? 'vi'
    refuseWithoutTerminal(editor)
    // Creates the directory. The lock is not held while the user edits.
    await whileLocked(project, () => undefined)
    const draft = new Draft(project)
    let keep = false
    try {
      for (;;) {
        const { code } = await runOnTerminal(['/bin/sh', '-c', `${editor} "$1"`, 'sh', draft.file], {
          env,
          cwd: draft.directory,
        })
        if (code !== 0)
          throw new PenError('STATE', {
            what: `the editor failed (${code === null ? 'signal' : `exit ${code}`}); nothing was changed`,
            at: editor,
            hint: 'EDITOR=nano pen config edit',
          })
        try {
          const changed = await draft.finish()
          answer({ changed }, changed ? 'the live config was changed' : 'nothing was changed')
          return changed ? EXIT.ok : EXIT.failed
        } catch (error) {
          if (!(error instanceof PenError)) throw error
          keep = error.code === 'STATE'
          if (keep || flags.json || !canAsk()) throw error
          terminal.note(reportText(error, terminal.paintNote, false))
          if (!confirm('Continue editing? Otherwise nothing changes.', terminal)) return EXIT.failed
        }
      }
    } finally {
      if (!keep) draft.remove()
    }
  },
})

/** These editors read keys from a terminal. Any other program may work without one. */
const NEEDS_TERMINAL =
  /(?:^|\/)(?:vi|vim|nvim|view|nano|pico|emacs|joe|jed|micro|hx|helix|kak|ne|mcedit|ed|ex|less|more)(?:\s|$)/

function refuseWithoutTerminal(editor: string): void {
  if (!NEEDS_TERMINAL.test(editor) || (isTerminal(0) && isTerminal(1))) return
  throw new PenError('USAGE', {
    what: `${editor} needs a terminal`,
    at: 'pen config edit',
    hint: 'pen config set KEY VALUE, or run it on a terminal',
  })
}
