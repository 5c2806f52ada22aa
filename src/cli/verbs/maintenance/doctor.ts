import { version } from '../../../../package.json'
import { EXIT, PenError } from '../../../base/error.ts'
import { kernelRelease } from '../../../base/kernel/kernel-facts.ts'
import { printable } from '../../../base/printable.ts'
import { runOnTerminal } from '../../../base/spawn.ts'
import { examine } from '../../../doctor/examine.ts'
import type { Finding, Status } from '../../../doctor/finding.ts'
import { canAsk, confirm } from '../../frame/ask.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import type { Colour, Paint } from '../../render/colour.ts'

/** Delay before progress is shown. */
const PROGRESS_AFTER_MS = 500

export const verb = defineVerb({
  name: 'doctor',
  summary: 'Check this machine for what pen needs',
  details:
    'Each line is ok, weak (pen run works with reduced protection) or fails (pen run does not work), with the reason and the fix for this distribution. Temporary files are removed. Exit code 0 if pen run works here, 1 if not.',
  flags: {
    fix: {
      kind: 'boolean',
      about: 'offer to run the fixes, one by one',
    },
    strict: { kind: 'boolean', about: 'exit with 1 if anything is weak, too' },
  },
  examples: {
    'pen doctor': 'check this machine and the current project',
    'pen doctor --fix': 'also offer to install what is missing, and to prepare virtual machines',
    'pen doctor --strict': 'fail if any protection is weaker',
    'pen doctor --json': 'print JSON',
  },
  async run({ flags, env, terminal, answer }) {
    if (flags.fix && (flags.json || !canAsk())) throw cannotAsk()
    const began = performance.now()
    const { distribution, findings } = await examine({
      env,
      onCheck: name => {
        if (performance.now() - began > PROGRESS_AFTER_MS) terminal.note(`checking ${name} …`)
      },
    })
    const works = findings.every(({ status }) => status !== 'fails')
    const good = works && !(flags.strict && findings.some(({ status }) => status === 'weak'))
    answer(
      {
        version: 1,
        pen: version,
        system: { id: distribution.id, name: distribution.name, kernel: kernelRelease() },
        works,
        ok: good,
        findings: findings.map(({ id, status, what, why = null, fix = null }) => ({
          id,
          status,
          what,
          why,
          fix,
        })),
      },
      doctorText(findings, works, terminal.paint),
    )
    const exitCode = good ? EXIT.ok : EXIT.failed
    if (flags.fix) await offerFixes(findings, env, terminal)
    return exitCode
  },
})

/** Runs nothing that the user has not seen and confirmed. */
async function offerFixes(
  findings: readonly Finding[],
  env: Readonly<Record<string, string | undefined>>,
  terminal: Terminal,
): Promise<void> {
  const fixes = findings.flatMap(({ id, does }) => (does === undefined ? [] : [{ id, argv: does }]))
  if (fixes.length === 0) terminal.note('there is nothing that pen can fix by itself')
  for (const { id, argv } of fixes) {
    terminal.note(printable(`${id}: ${argv.join(' ')}`, CAP))
    if (!confirm('Run this?', terminal)) continue
    const { code } = await runOnTerminal(argv, { env, cwd: process.cwd() })
    terminal.note(code === 0 ? 'done; run pen doctor again' : `it failed (exit ${code})`)
  }
}

const cannotAsk = (): PenError =>
  new PenError('USAGE', {
    what: 'pen doctor --fix asks before it changes anything, and stdin or stderr is not a terminal',
    hint: 'pen doctor, and run the commands that it prints',
  })

const COLOURS: Readonly<Record<Status, Colour>> = { ok: 'green', weak: 'yellow', fails: 'red' }
const CAP = 1000

/** All text is escaped, because paths, versions and messages come from other programs. */
export function doctorText(findings: readonly Finding[], works: boolean, paint: Paint): string {
  const lines = findings.flatMap(({ id, status, what, why, fix }) => [
    `${paint(COLOURS[status], status.padEnd(5))}  ${id}: ${printable(what, CAP)}`,
    ...(why === undefined ? [] : [`       ${paint('dim', printable(why, CAP))}`]),
    ...(fix === undefined ? [] : [`       ${paint('green', 'fix:')} ${printable(fix, CAP)}`]),
  ])
  const count = (wanted: Status): number => findings.filter(({ status }) => status === wanted).length
  const end = works ? 'pen run works here' : 'pen run does not work here'
  return [...lines, '', `${end}: ${count('ok')} ok, ${count('weak')} weak, ${count('fails')} failed`].join(
    '\n',
  )
}
