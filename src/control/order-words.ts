/** A start order in the words of a command line, for a person. Values of variables are left out: they may be secrets. */
import { shellWord } from '../base/shell-word.ts'
import type { SupervisorOrder } from './supervisor-order.ts'

/** A flag for each list of strings, by its place in a config document. */
const LISTS: readonly (readonly [section: string, key: string, flag: string])[] = [
  ['files', 'read', '--read'],
  ['files', 'write', '--write'],
  ['files', 'deny', '--deny'],
  ['network', 'http', '--allow'],
  ['network', 'tcp', '--allow'],
  ['network', 'groups', '--group'],
]
const SINGLE = ['profile', 'isolation', 'backend'] as const
const KNOWN = [...SINGLE, 'files', 'network', 'limits', 'env', 'acceptGaps']

export function orderWords({ flags, offline, allowUserExpansion, agent }: SupervisorOrder): string {
  const document = flags as Readonly<Record<string, unknown>>
  const words = [
    ...(offline ? ['--offline'] : []),
    ...SINGLE.flatMap(key => withValue(`--${key}`, document[key])),
    ...LISTS.flatMap(([section, key, flag]) =>
      textsIn(record(document[section])[key]).flatMap(text => withValue(flag, text)),
    ),
    ...(record(document['network'])['ask'] === 'hold' ? ['--ask'] : []),
    ...Object.entries(record(document['limits'])).map(([key, value]) => `--limit ${key}=${String(value)}`),
    ...Object.keys(record(document['env'])).flatMap(name => withValue('--env', name)),
    ...textsIn(document['acceptGaps']).flatMap(name => withValue('--accept-gap', name)),
    ...(allowUserExpansion ? ['--allow-user-expansion'] : []),
    ...withValue('--agent', agent),
    // A program may say more than flags can.
    ...Object.keys(document)
      .filter(key => !KNOWN.includes(key))
      .map(key => `(policy: ${key})`),
  ]
  return words.join(' ')
}

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(one => typeof one === 'string') : []

const withValue = (flag: string, value: unknown): readonly string[] =>
  typeof value === 'string' ? [`${flag} ${shellWord(value) ?? '…'}`] : []
