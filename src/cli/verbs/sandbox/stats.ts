import { EXIT } from '../../../base/error.ts'
import { endOf } from '../../../base/printable.ts'
import { requestValue } from '../../../control/client.ts'
import { type KnownSandbox, listSandboxes } from '../../../lifecycle/list.ts'
import type { SandboxStats } from '../../../run/status.ts'
import { windowSize } from '../../../terminal/host-terminal.ts'
import { isTerminal } from '../../../terminal/termios.ts'
import { defineVerb } from '../../frame/verb.ts'
import { showUntilQuit } from '../../render/live-table.ts'
import { showSize, table } from '../../render/table.ts'

/** The time between two readings when pen prints once. */
const SAMPLE_MS = 250
const REFRESH_MS = 1000

export const verb = defineVerb({
  name: 'stats',
  summary: 'Show CPU, memory, disk and network use of sandboxes',
  details:
    'On a terminal it refreshes every second until q or Ctrl-C; otherwise it prints once. DISK is growth of the project and its volumes since the start; OPEN, REFUSED, UP and DOWN count gateway traffic. Exit code 0 if a sandbox is running, 1 if not.',
  flags: {
    all: { kind: 'boolean', about: 'all your sandboxes, not only this project' },
    once: { kind: 'boolean', about: 'print once, even on a terminal' },
  },
  examples: {
    'pen stats': 'show this project until q',
    'pen stats --all --once': 'print all sandboxes once',
    'pen stats --json': 'print JSON once',
  },
  async run(invocation) {
    const { flags, answer } = invocation
    const chosen = flags.all ? runningSandboxes : async () => [invocation.project]
    const sandboxes = await chosen()
    const first = await readStats(sandboxes)
    if (first.length === 0) {
      answer(
        { version: 1, sandboxes: [] },
        flags.all ? 'no sandbox is running' : `${sandboxes[0]?.id}: not running`,
      )
      return EXIT.failed
    }
    if (!flags.json && !flags.once && isTerminal(0) && isTerminal(1)) {
      let before = first
      await showUntilQuit(REFRESH_MS, async () => {
        const now = await readStats(await chosen())
        const lines = statsTable(before, now, windowSize(1).cols)
        before = now
        return lines
      })
      return EXIT.ok
    }
    await new Promise(resolve => setTimeout(resolve, SAMPLE_MS))
    const second = await readStats(sandboxes)
    const columns = isTerminal(1) ? windowSize(1).cols : Number.POSITIVE_INFINITY
    const data = second.map(one => ({ id: one.id, cpuPercent: percent(first, one), ...one.stats }))
    answer({ version: 1, sandboxes: data }, statsTable(first, second, columns))
    return EXIT.ok
  },
})

type Sandbox = Pick<KnownSandbox, 'id' | 'stateDir'>

interface Reading {
  readonly id: string
  readonly stats: SandboxStats
}

const runningSandboxes = async (): Promise<readonly Sandbox[]> =>
  (await listSandboxes({ repair: true })).filter(({ state }) => state === 'running')

async function readStats(sandboxes: readonly Sandbox[]): Promise<Reading[]> {
  const readings = sandboxes.map(async ({ id, stateDir }) => {
    const asked = await requestValue(stateDir, 'stats')
    return asked === undefined ? [] : [{ id, stats: asked.value as SandboxStats }]
  })
  return (await Promise.all(readings)).flat()
}

/** Percent of one CPU: two busy CPUs are 200. */
function percent(before: readonly Reading[], { id, stats }: Reading): number {
  const earlier = before.find(one => one.id === id)?.stats ?? stats
  const passed = stats.atMs - earlier.atMs
  return passed <= 0 ? 0 : Math.max(0, Math.round(((stats.cpuMs - earlier.cpuMs) / passed) * 1000) / 10)
}

const HEADINGS = ['ID', 'CPU', 'MEMORY', 'PROCESSES', 'DISK', 'COMMANDS', 'OPEN', 'REFUSED', 'UP', 'DOWN']

/** One table if it fits, else two: resources, then commands and network. */
export function statsTable(before: readonly Reading[], now: readonly Reading[], columns: number): string[] {
  const rows = rowsOf(before, now)
  const whole = table(HEADINGS, rows)
  if (whole.every(line => line.length <= columns)) return whole
  const [name = '', ...rest] = HEADINGS
  const part = (from: number, to: number): string[] => {
    const headings = rest.slice(from, to)
    const cells = rows.map(([id = '', ...row]) => [id, ...row.slice(from, to)])
    const width = Math.max(
      ...table(
        headings,
        cells.map(row => row.slice(1)),
      ).map(line => line.length),
    )
    // The hash at the end of a name is unique, so a long name loses its beginning.
    const room = Math.max(8, columns - width - 2)
    return table(
      [name, ...headings],
      cells.map(([id = '', ...row]) => [endOf(id, room), ...row]),
    )
  }
  return [...part(0, 4), '', ...part(4, rest.length)]
}

function rowsOf(before: readonly Reading[], now: readonly Reading[]): string[][] {
  return now.map(one => {
    const { limits, network, ...used } = one.stats
    return [
      one.id,
      `${percent(before, one).toFixed(1)}%`,
      `${showSize(used.memoryBytes)} / ${showSize(limits.memory)}`,
      `${used.processes} / ${limits.pids}`,
      `${showSize(used.diskBytes)} / ${showSize(limits.disk)}`,
      String(used.executions),
      ...(network === null
        ? ['-', '-', '-', '-']
        : [
            String(network.open),
            String(network.denied),
            showSize(network.bytesUp),
            showSize(network.bytesDown),
          ]),
    ]
  })
}
