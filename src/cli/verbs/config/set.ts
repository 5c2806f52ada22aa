import { PenError } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import { editLiveConfig } from '../../../config/edit.ts'
import { readWords, withValueAt } from '../../../config/json/value-at.ts'
import { type ConfigKey, parseConfigKey } from '../../../policy/config-key.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config set',
  summary: 'Set one key of the live config',
  details:
    'The config is validated before it is written. Lists take several words or JSON; objects take JSON. Network changes apply to running sandboxes within a second.',
  flags: {
    unset: { kind: 'boolean', about: "remove the key; the profile's value applies" },
  },
  positionals: {
    key: { arity: 'one', about: 'for example limits.memory, network.http or env.NAME' },
    value: { arity: 'many', about: 'the new value; replaces the old one' },
  },
  examples: {
    'pen config set limits.memory 8GiB': 'set the memory limit',
    'pen config set network.groups npm github': 'allow exactly these groups; pen allow adds single hosts',
    [`pen config set env.AWS_PROFILE '{"from":"host"}'`]: "pass the host's value",
    'pen config set --unset limits.memory': "return to the profile's value",
  },
  async run({ flags, positionals, project, answer }) {
    const key = configKey(positionals.key)
    requireOne(flags.unset, positionals.value)
    const value = flags.unset ? undefined : readWords(positionals.value, key)
    const changed = await editLiveConfig(project, config => withValueAt(config, key.path, value))
    const name = key.path.join('.')
    const now = value === undefined ? 'no longer set' : printableJson(value)
    answer(
      { key: name, value: value ?? null, changed },
      `${printable(name, 200)} is ${changed ? now : 'unchanged'}`,
    )
  },
})

export function configKey(text: string): ConfigKey {
  const key = parseConfigKey(text)
  if (key.ok) return key.value
  throw new PenError('USAGE', {
    what: key.why,
    at: 'KEY',
    hint: key.fix ?? 'docs/reference/config.md lists the keys',
  })
}

function requireOne(unset: boolean, words: readonly string[]): void {
  if (unset === (words.length === 0)) return
  throw new PenError('USAGE', {
    what: unset ? '--unset takes no value' : 'no value given',
    at: 'VALUE',
    hint: `pen config set KEY VALUE, or pen config set --unset KEY; '[]' is an empty list`,
  })
}
