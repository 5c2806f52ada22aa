import { version } from '../../../../package.json'
import { EXIT } from '../../../base/error.ts'
import { kernelRelease } from '../../../base/kernel/kernel-facts.ts'
import { printable } from '../../../base/printable.ts'
import { examine } from '../../../doctor/examine.ts'
import type { Finding, Status } from '../../../doctor/finding.ts'
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
    strict: { kind: 'boolean', about: 'exit with 1 if anything is weak, too' },
  },
  examples: {
    'pen doctor': 'check this machine and the current project',
    'pen doctor --strict': 'fail if any protection is weaker',
    'pen doctor --json': 'print JSON',
  },
  async run({ flags, env, terminal, answer }) {
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
    return good ? EXIT.ok : EXIT.failed
  },
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
