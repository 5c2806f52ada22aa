import type { EngineName } from '../../../backend/container/engine/engine.ts'
import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { type Millis, showMillis } from '../../../base/quantity.ts'
import { requestValue } from '../../../control/client.ts'
import { presenceOf } from '../../../control/state.ts'
import { engineRisks } from '../../../doctor/known-escapes.ts'
import { sandboxNamed } from '../../../lifecycle/list.ts'
import { BANNER } from '../../../run/launch-line.ts'
import type { SandboxStatus } from '../../../run/status.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import type { Paint } from '../../render/colour.ts'
import { showAge, showSize } from '../../render/table.ts'

export const verb = defineVerb({
  name: 'status',
  summary: "Show whether this project's sandbox runs, and how",
  details: 'Exit code 0 if it is running, 1 if not.',
  flags: defineFlags({
    ...jsonFlag,
    all: { kind: 'boolean', about: 'one line for each weaker protection' },
  }),
  positionals: { name: { arity: 'optional', about: 'sandbox name from pen ls (default: this project)' } },
  examples: [
    { line: 'pen status', does: 'backend, image, limits, weaker protections, gateway health' },
    { line: 'pen status api-1a2b3c4d5e6f7a8b', does: 'the sandbox of another project' },
    { line: 'pen status --json', does: 'print JSON' },
    { line: 'pen status >/dev/null && echo runs', does: 'check it in a script' },
  ],
  async run({ flags, positionals, terminal }) {
    const { id, stateDir, workspace = null, state: stateOfPen } = await sandboxNamed(positionals.name)
    const asked = await requestValue(stateDir, 'status')
    if (asked === undefined) {
      const presence = await presenceOf(stateDir)
      const state = presence.is === 'absent' ? 'not running' : 'starting or stopping'
      if (flags.json) terminal.printJson({ version: 1, running: false, id, workspace })
      else terminal.print(`${id}: ${state}\n  ${printable(workspace ?? '-', 4096)}`)
      return EXIT.failed
    }
    const status = asked.value as SandboxStatus
    const risks = status.image === null ? [] : await risksOf(status, `${stateOfPen}/cache`)
    if (flags.json) terminal.printJson({ version: 1, running: true, ...status, risks })
    else terminal.print(statusText(status, terminal.paint, Date.now(), { risks, all: flags.all }))
    return EXIT.ok
  },
})

/** Known vulnerabilities of the container's engine and runtime. */
async function risksOf({ backend, isolation }: SandboxStatus, cacheDir: string): Promise<readonly string[]> {
  return await engineRisks(backend as EngineName, isolation, cacheDir)
}

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
    [
      'limits',
      `${cpus} CPUs, ${showSize(memory)} memory, ${pids} processes, ${showSize(disk)} disk, ${showMillis(wall as Millis)}`,
    ],
    ...weakerRows(status, all),
    ...status.gaps.map(({ name, why }) => ['gap', `${name}: ${printable(why, 300)}`] as const),
    ...risks.map(risk => ['warning', paint('yellow', printable(risk, 600))] as const),
    ['commands', String(status.executions)],
    ['supervisor', `process ${status.pid}, run ${printable(status.run, 64)}`],
  ]
  return [
    `${status.id}: ${paint('green', 'running')}`,
    ...(status.soft ? [`  ${paint('red', BANNER)}`] : []),
    ...rows.map(([name, text]) => `  ${name.padEnd(10)} ${text}`),
  ].join('\n')
}
