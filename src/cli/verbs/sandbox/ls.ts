import { existsSync } from 'node:fs'
import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import type { KnownSandbox } from '../../../lifecycle/list.ts'
import { listSandboxes } from '../../../lifecycle/list.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { showAge, table } from '../../render/table.ts'

/** False for projects in which only `pen run` was used: they have an audit, but no sandbox to start or remove. */
const isListed = ({ state, workspace, stateDir }: KnownSandbox): boolean =>
  state !== 'stopped' || workspace !== undefined || existsSync(`${stateDir}/config.json`)

export const verb = defineVerb({
  name: 'ls',
  summary: 'List all your sandboxes, running or not',
  flags: jsonFlag,
  examples: [
    { line: 'pen ls', does: 'list name, state, backend, start time and directory' },
    { line: 'pen ls --json', does: 'print JSON' },
  ],
  async run({ flags, terminal }) {
    const known = (await listSandboxes({ repair: true })).filter(isListed)
    if (flags.json) {
      terminal.printJson({
        version: 1,
        sandboxes: known.map(({ id, state, workspace = null, record }) => ({
          id,
          state,
          workspace,
          backend: record?.backend ?? null,
          image: record?.image ?? null,
          since: record?.since ?? null,
          pid: record?.pid ?? null,
        })),
      })
      return EXIT.ok
    }
    if (known.length === 0) {
      terminal.note('no sandboxes yet; fix: pen start')
      return EXIT.ok
    }
    const rows = known.map(({ id, state, workspace, record }) => [
      id,
      state,
      printable(record?.backend ?? '-', 16),
      record === undefined ? '-' : showAge(record.since, Date.now()),
      workspace === undefined ? '-' : printable(workspace, 4096),
    ])
    for (const line of table(['NAME', 'STATE', 'BACKEND', 'SINCE', 'DIRECTORY'], rows)) terminal.print(line)
    return EXIT.ok
  },
})
