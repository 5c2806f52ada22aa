import { EXIT, PenError } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import { editLiveConfig } from '../../../config/edit.ts'
import { readWords, withValueAt } from '../../../config/json/value-at.ts'
import { findProject } from '../../../config/project.ts'
import { type ConfigKey, parseConfigKey } from '../../../policy/config-key.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config set',
  summary: 'Set one key of the live config',
  details:
    'The whole config is checked before it is written; on a mistake it stays as it was. A list takes several words, or one in JSON; what has parts of its own is written in JSON. A running sandbox takes up changes of its network within a second.',
  flags: {
    unset: { kind: 'boolean', about: 'take the key out, so that the profile decides' },
    ...jsonFlag,
  },
  positionals: {
    key: { arity: 'one', about: 'as limits.memory, network.http or env.NAME' },
    value: { arity: 'many', about: 'the new value, in the place of the old one' },
  },
  examples: [
    { line: 'pen config set limits.memory 8GiB', does: 'more memory than the profile gives' },
    {
      line: 'pen config set network.groups npm github',
      does: 'these two and no others; pen allow adds single hosts',
    },
    { line: `pen config set env.AWS_PROFILE '{"from":"host"}'`, does: "pass on the host's own" },
    { line: 'pen config set --unset limits.memory', does: "the profile's again" },
  ],
  async run({ flags, positionals, terminal }) {
    const key = configKey(positionals.key)
    requireOne(flags.unset, positionals.value)
    const value = flags.unset ? undefined : readWords(positionals.value, key)
    const project = findProject()
    const changed = await editLiveConfig(project, config => withValueAt(config, key.path, value))
    const name = key.path.join('.')
    if (flags.json) terminal.printJson({ key: name, value: value ?? null, changed })
    else if (!changed) terminal.print(`${printable(name, 200)} was so already`)
    else
      terminal.print(
        value === undefined
          ? `${printable(name, 200)} is no longer set`
          : `${printable(name, 200)} is ${printableJson(value)}`,
      )
    return EXIT.ok
  },
})

export function configKey(text: string): ConfigKey {
  const key = parseConfigKey(text)
  if (key.ok) return key.value
  throw new PenError('USAGE', {
    what: key.why,
    at: 'KEY',
    hint: key.fix ?? 'the keys are in docs/reference/config.md',
  })
}

function requireOne(unset: boolean, words: readonly string[]): void {
  if (unset === (words.length === 0)) return
  throw new PenError('USAGE', {
    what: unset ? '--unset takes no value' : 'no value is given',
    at: 'VALUE',
    hint: `write pen config set KEY VALUE, or pen config set --unset KEY; '[]' is an empty list`,
  })
}
