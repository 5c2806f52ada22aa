import { version } from '../../../../package.json'
import { EXIT } from '../../../base/error.ts'
import { kernelRelease } from '../../../base/kernel/kernel-release.ts'
import { printable } from '../../../base/printable.ts'
import { examine } from '../../../doctor/examine.ts'
import type { Finding, Status } from '../../../doctor/finding.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import type { Colour, Paint } from '../../render/colour.ts'

/** From then on each step is told: until then nobody wonders. */
const PATIENCE_MS = 500

export const verb = defineVerb({
  name: 'doctor',
  summary: 'Check this machine for what pen needs',
  details:
    'Each line is ok, weak (pen run works, with less than it could have) or fails (pen run does not work), with the reason and the fix for this distribution. What is made for it is taken away again. Exit code 0 when pen run would work here, 1 otherwise.',
  flags: defineFlags({
    ...jsonFlag,
    strict: { kind: 'boolean', about: 'exit with 1 also when something is weak' },
  }),
  examples: [
    { line: 'pen doctor', does: 'what works here, in the current project' },
    { line: 'pen doctor --strict', does: 'for a machine that must have everything' },
    { line: 'pen doctor --json', does: 'for a program' },
  ],
  async run({ flags, env, terminal }) {
    const began = performance.now()
    const { distribution, findings } = await examine({
      env,
      onCheck: name => {
        if (performance.now() - began > PATIENCE_MS) terminal.note(`trying ${name} …`)
      },
    })
    const works = findings.every(({ status }) => status !== 'fails')
    const good = works && !(flags.strict && findings.some(({ status }) => status === 'weak'))
    if (flags.json)
      terminal.printJson({
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
      })
    else terminal.print(doctorText(findings, works, terminal.paint))
    return good ? EXIT.ok : EXIT.failed
  },
})

const COLOURS: Readonly<Record<Status, Colour>> = { ok: 'green', weak: 'yellow', fails: 'red' }
const CAP = 1000

/** Paths, versions and messages of tools are not pen's own words: all are shown escaped. */
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
