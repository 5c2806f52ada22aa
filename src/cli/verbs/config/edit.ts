import { isatty } from 'node:tty'
import { EXIT, PenError } from '../../../base/error.ts'
import { runOnTerminal } from '../../../base/spawn.ts'
import { Draft } from '../../../config/draft.ts'
import { whileLocked } from '../../../config/edit.ts'
import { findProject } from '../../../config/project.ts'
import { agrees, canAsk } from '../../frame/ask.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { reportText } from '../../frame/report.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config edit',
  summary: 'Edit the live config in your editor',
  details:
    'Opens a copy in $VISUAL or $EDITOR (vi if neither is set). What you save is checked before it takes the place of the config; on a mistake you are told where, and on a terminal you may go on editing. Exit code 1 when nothing was changed.',
  flags: jsonFlag,
  examples: [{ line: 'pen config edit', does: 'the whole live config' }],
  async run({ flags, env, terminal }) {
    const editor = [env['VISUAL'], env['EDITOR']].find(word => word !== undefined && word !== '') ?? 'vi'
    const project = findProject()
    await refuseWithoutTerminal(editor)
    // For its directory; the lock itself is not held while a person thinks.
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
            what: `the editor ended with ${code === null ? 'a signal' : `code ${code}`}: nothing was changed`,
            at: editor,
            hint: 'set EDITOR to the command of your editor',
          })
        try {
          const changed = await draft.finish()
          if (flags.json) terminal.printJson({ changed })
          else terminal.print(changed ? 'the live config is changed' : 'nothing was changed')
          return changed ? EXIT.ok : EXIT.failed
        } catch (error) {
          if (!(error instanceof PenError)) throw error
          keep = error.code === 'STATE'
          if (keep || flags.json || !(await canAsk())) throw error
          terminal.note(reportText(error, terminal.paintNote, false))
          if (!agrees('Go on editing? Otherwise nothing is changed.', terminal)) return EXIT.failed
        }
      }
    } finally {
      if (!keep) draft.remove()
    }
  },
})

/** They wait for keys, and without a terminal nobody types any. Another program that the user names may do without one. */
const NEEDS_TERMINAL =
  /(?:^|\/)(?:vi|vim|nvim|view|nano|pico|emacs|joe|jed|micro|hx|helix|kak|ne|mcedit|ed|ex|less|more)(?:\s|$)/

async function refuseWithoutTerminal(editor: string): Promise<void> {
  if (!NEEDS_TERMINAL.test(editor) || (isatty(0) && isatty(1))) return
  throw new PenError('USAGE', {
    what: `${editor} needs a terminal, and this is none`,
    at: 'pen config edit',
    hint: 'run it on a terminal, or change one value: pen config set KEY VALUE',
  })
}
