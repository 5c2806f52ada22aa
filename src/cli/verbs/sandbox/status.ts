import type { EngineName } from '../../../backend/container/engine/engine.ts'
import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { type Millis, showMillis } from '../../../base/quantity.ts'
import { requestValue } from '../../../control/client.ts'
import { presenceOf } from '../../../control/state.ts'
import { engineRisks } from '../../../doctor/known-escapes.ts'
import { chosenSandbox } from '../../../lifecycle/list.ts'
import { BANNER } from '../../../run/launch-line.ts'
import type { SandboxStatus } from '../../../run/status.ts'
import { defineVerb } from '../../frame/verb.ts'
import type { Paint } from '../../render/colour.ts'
import { serverText } from '../../render/server-text.ts'
import { showAge, showSize } from '../../render/table.ts'

export const verb = defineVerb({
  name: 'status',
  summary: "Show whether this project's sandbox runs, and how",
  details: 'Exit code 0 if it is running, 1 if not.',
  flags: {
    all: { kind: 'boolean', about: 'one line for each weaker protection' },
  },
  positionals: { id: { arity: 'optional', about: 'sandbox from pen ls (default: that of this project)' } },
  examples: {
    'pen status': 'backend, image, limits, weaker protections, gateway health',
    'pen status api-1a2b3c4d5e6f7a8b': 'the sandbox of another project',
    'pen status --json': 'print JSON',
    'pen status >/dev/null && echo runs': 'check it in a script',
  },
  async run(invocation) {
    const { flags, positionals, terminal, answer } = invocation
    const chosen = await chosenSandbox(positionals.id, invocation)
    const { id, stateDir, workspace = null, state: stateOfPen } = chosen
    const asked = await requestValue(stateDir, 'status')
    if (asked === undefined) {
      const presence = await presenceOf(stateDir)
      const state = presence.is === 'absent' ? 'not running' : 'starting or stopping'
      answer(
        { version: 1, running: false, id, workspace },
        `${id}: ${state}\n  ${printable(workspace ?? '-', 4096)}`,
      )
      return EXIT.failed
    }
    const status = asked.value as SandboxStatus
    const risks =
      status.image === null
        ? []
        : await engineRisks(status.backend as EngineName, status.isolation, `${stateOfPen}/cache`)
    answer(
      { version: 1, running: true, ...status, risks },
      statusText(status, terminal.paint, Date.now(), { risks, all: flags.all }),
    )
    return EXIT.ok
  },
})

/** One line unless --all is given: most machines have weaker protections, and the user cannot change that. */
function weakerRows({ weaker }: SandboxStatus, all: boolean): (readonly [string, string])[] {
  if (all) return weaker.map(({ name, how }) => ['weaker', `${name}: ${printable(how, 300)}`])
  const names = weaker.map(({ name }) => name).join(', ')
  return weaker.length === 0 ? [] : [['weaker', `${names} (pen status --all)`]]
}

export function statusText(
  status: SandboxStatus,
  paint: Paint,
  now: number,
  { risks = [], all = false }: { readonly risks?: readonly string[]; readonly all?: boolean } = {},
): string {
  const { cpus, memory, pids, disk, wall } = status.limits
  const gateway = { answers: paint('green', 'answers'), closed: paint('red', 'closed') }
  const servers = serverText(status)
  const rows: readonly (readonly [string, string])[] = [
    ['directory', printable(status.workspace, 4096)],
    ['since', `${showAge(status.since, now)} (${status.since})`],
    ['backend', `${status.backend}, isolation ${status.isolation}`],
    ...(status.image === null ? [] : [['image', printable(status.image, 200)] as const]),
    ['network', printable(status.network, 200)],
    ...(status.gateway === null ? [] : [['gateway', gateway[status.gateway]] as const]),
    ...status.forwards.map(
      ({ guest, host }) => ['forward', `port ${guest}, from 127.0.0.1:${host} of this machine`] as const,
    ),
    ...(servers === undefined ? [] : [['servers', servers] as const]),
    [
      'limits',
      `${cpus} CPUs, ${showSize(memory)} memory, ${pids} processes, ${showSize(disk)} disk, ${showMillis(wall as Millis)}`,
    ],
    ...weakerRows(status, all),
    ...status.gaps.map(({ name, why }) => ['gap', `${name}: ${printable(why, 300)}`] as const),
    ...risks.map(risk => ['warning', paint('yellow', printable(risk, 600))] as const),
    ...status.git.map(line => ['git', printable(line.replace(/^git: /, ''), 600)] as const),
    ['commands', String(status.executions)],
    ['supervisor', `process ${status.pid}, run ${printable(status.run, 64)}`],
  ]
  return [
    `${status.id}: ${paint('green', 'running')}`,
    ...(status.soft ? [`  ${paint('red', BANNER)}`] : []),
    ...rows.map(([name, text]) => `  ${name.padEnd(10)} ${text}`),
  ].join('\n')
}
