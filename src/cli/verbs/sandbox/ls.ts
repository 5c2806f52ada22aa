import { existsSync } from 'node:fs'
import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import type { KnownSandbox } from '../../../lifecycle/list.ts'
import { listSandboxes } from '../../../lifecycle/list.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { showAge, table } from '../../render/table.ts'

/** Where only single commands were run, there is an audit and no sandbox that could be started or removed. */
const isOfInterest = ({ state, workspace, stateDir }: KnownSandbox): boolean =>
  state !== 'stopped' || workspace !== undefined || existsSync(`${stateDir}/config.json`)

export const verb = defineVerb({
  name: 'ls',
  summary: 'List all your sandboxes, running or not',
  flags: jsonFlag,
  examples: [
    { line: 'pen ls', does: 'name, state, backend, since when, and where' },
    { line: 'pen ls --json', does: 'for a program' },
  ],
  async run({ flags, terminal }) {
    const known = (await listSandboxes({ repair: true })).filter(isOfInterest)
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
      terminal.note('no sandbox is known yet: pen start makes one for the directory that you are in')
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
