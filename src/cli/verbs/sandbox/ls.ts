import { existsSync } from 'node:fs'
import { printable } from '../../../base/printable.ts'
import type { KnownSandbox } from '../../../lifecycle/list.ts'
import { listSandboxes } from '../../../lifecycle/list.ts'
import { defineVerb } from '../../frame/verb.ts'
import { showAge, table } from '../../render/table.ts'

/** False for projects in which only `pen run` was used: they have an audit, but no sandbox to start or remove. */
const isListed = ({ name, state, workspace, stateDir }: KnownSandbox): boolean =>
  name !== undefined ||
  state !== 'stopped' ||
  workspace !== undefined ||
  existsSync(`${stateDir}/config.json`)

export const verb = defineVerb({
  name: 'ls',
  summary: 'List all your sandboxes, running or not',
  examples: {
    'pen ls': 'list id, name, state, backend, start time and directory',
    'pen ls --json': 'print JSON',
  },
  async run({ flags, terminal, answer }) {
    const known = (await listSandboxes({ repair: true })).filter(isListed)
    if (known.length === 0 && !flags.json) {
      terminal.note('no sandboxes yet; fix: pen start')
      return
    }
    const sandboxes = known.map(({ id, name = null, state, workspace = null, record }) => ({
      id,
      name,
      state,
      workspace,
      backend: record?.backend ?? null,
      image: record?.image ?? null,
      since: record?.since ?? null,
      pid: record?.pid ?? null,
    }))
    const rows = sandboxes.map(({ id, name, state, workspace, backend, since }) => [
      id,
      name ?? '-',
      state,
      printable(backend ?? '-', 16),
      since === null ? '-' : showAge(since, Date.now()),
      printable(workspace ?? '-', 4096),
    ])
    answer({ version: 1, sandboxes }, table(['ID', 'NAME', 'STATE', 'BACKEND', 'SINCE', 'DIRECTORY'], rows))
  },
})
