import { EXIT } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import { readJson } from '../../../config/json/json.ts'
import { valueAt } from '../../../config/json/value-at.ts'
import { findLive } from '../../../config/layers.ts'
import { defineVerb } from '../../frame/verb.ts'
import { configKey } from './set.ts'

export const verb = defineVerb({
  name: 'config get',
  summary: 'Print one key of the live config',
  details:
    'Lists are printed one entry per line. Exit code 1 if the key is not set; pen config show prints the active value.',
  positionals: { key: { arity: 'one', about: 'for example limits.memory, network.http or env.NAME' } },
  examples: {
    'pen config get network.http': 'print the allowed hosts',
    'pen config get limits --json': 'print the limits as JSON',
  },
  async run({ flags, positionals, terminal, project, answer }) {
    const { path } = configKey(positionals.key)
    const { live } = findLive(project)
    const value = live === undefined ? undefined : valueAt(readJson(live.bytes, live.file).value, path)
    if (value === undefined && !flags.json)
      terminal.note(`${printable(positionals.key, 200)} is not set in the live config; fix: pen config show`)
    answer(value ?? null, value === undefined ? [] : showValue(value))
    return value === undefined ? EXIT.failed : EXIT.ok
  },
})

function showValue(value: unknown): string {
  const one = (part: unknown) => (typeof part === 'string' ? printable(part, 65_536) : printableJson(part))
  if (Array.isArray(value) && value.length > 0) return value.map(one).join('\n')
  return typeof value === 'object' ? printableJson(value, 2) : one(value)
}
