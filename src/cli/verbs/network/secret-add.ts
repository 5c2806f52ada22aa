import { PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { loadPolicy } from '../../../config/load.ts'
import { stateDirectories } from '../../../config/project.ts'
import { publicSuffixTest } from '../../../config/public-suffix.ts'
import { addSecret, storeValue } from '../../../config/secrets.ts'
import { requestOrder } from '../../../control/client.ts'
import { decideConnection, exactRule } from '../../../policy/network/decide-connection.ts'
import { ruleWord } from '../../../policy/network/net-rule.ts'
import { printSecret } from '../../../policy/network/secret.ts'
import type { ConfigDocument } from '../../../policy/schema.ts'
import { secretEntry } from '../../../policy/secret-entry.ts'
import { readHidden } from '../../frame/read-hidden.ts'
import { defineVerb } from '../../frame/verb.ts'

type Entry = NonNullable<ConfigDocument['secrets']>[number]

export const verb = defineVerb({
  name: 'secret add',
  summary: 'Let the sandbox use a secret it never sees',
  details:
    'Inside, the variable NAME holds a placeholder. The gateway puts the value into requests to the hosts of --to, in the header fields of --header. The value comes from a variable (--env), a file (--file), the keyring (--keyring), or a command after --. Without one of these, you type it or pipe it in, and pen stores it in a file of your own outside the project. Hosts still need a rule: see pen allow.',
  flags: {
    to: { kind: 'list', value: 'HOST:PORT', about: 'where it may go; with a path only there' },
    header: {
      kind: 'list',
      value: 'FIELD',
      about: 'a header field that carries it; Authorization and X-Api-Key if not given',
    },
    sign: {
      kind: 'choice',
      choices: ['aws'],
      about: 'AWS keys: NAME begins the variables, and pen signs each request',
    },
    env: { kind: 'string', value: 'NAME', about: 'read it from this variable at each start' },
    file: { kind: 'string', value: 'PATH', about: 'read it from this file at each start' },
    keyring: { kind: 'list', value: 'KEY=VALUE', about: 'read it from the keyring by these attributes' },
  },
  positionals: { name: { arity: 'one', about: 'the name of the variable inside' } },
  command: 'after-dashes',
  examples: {
    'pen secret add ANTHROPIC_API_KEY --env ANTHROPIC_API_KEY --to api.anthropic.com:443':
      'use your key at this host only',
    'pen secret add GH_TOKEN --to api.github.com:443 -- gh auth token': 'ask a command at each start',
    'pen secret add AWS --sign aws --to sts.eu-central-1.amazonaws.com:443 -- aws configure export-credentials':
      'AWS requests, signed outside',
    'pen secret add NPM_TOKEN --to registry.example.com:443': 'type the value; pen stores it',
  },
  async run({ flags, positionals: { name }, command, project, terminal, answer }) {
    const { to, header, sign } = flags
    const sources: Entry['from'][] = [
      ...(flags.env === undefined ? [] : [{ env: flags.env }]),
      ...(flags.file === undefined ? [] : [{ file: flags.file }]),
      ...(flags.keyring.length === 0 ? [] : [{ keyring: attributes(flags.keyring) }]),
      ...(command.length === 0 ? [] : [{ command: [...command] }]),
    ]
    if (sources.length > 1)
      throw new PenError('USAGE', {
        what: 'a secret has one source',
        at: 'pen secret add',
        hint: 'give one of --env, --file, --keyring and a command after --',
      })
    const isPublicSuffix = await publicSuffixTest(to)
    const check = (from: Entry['from']) => {
      const entry = {
        name,
        from,
        to: [...to],
        ...(header.length > 0 && { in: header.map(inHeader) }),
        ...(sign !== undefined && { sign }),
      }
      const parsed = secretEntry(entry, { trust: 'user', world: project.world, isPublicSuffix })
      if (parsed.ok) return { entry, secret: parsed.value }
      throw new PenError('USAGE', {
        what: parsed.why,
        at: 'pen secret add',
        hint: parsed.fix ?? 'pen secret add --help',
      })
    }
    // Checked before the user is asked for a value.
    const { secret } = check(sources[0] ?? { env: name })
    const from = sources[0] ?? {
      file: storeValue(project, name, await readHidden(`The value of ${name}?`, terminal)),
    }
    await addSecret(project, check(from).entry)
    answer({ added: name, to, project: project.world.workspace }, `added: ${printSecret(check(from).secret)}`)
    const { policy } = await loadPolicy(project, { flags: {}, offline: false, allowUserExpansion: false })
    for (const { rule } of secret.to) {
      if (rule.kind !== 'name' || decideConnection(policy.network.index, { name: rule.host }, rule.port).ok)
        continue
      terminal.note(
        `pen: note: ${printable(rule.host)}:${rule.port} is not allowed yet; fix: pen allow ${ruleWord(exactRule({ name: rule.host }, rule.port))}`,
      )
    }
    const running = await Promise.all(stateDirectories(project).map(requestOrder))
    if (running.some(order => order !== undefined))
      terminal.note('pen: note: the running sandbox does not have it yet; fix: pen restart')
  },
})

const inHeader = (field: string): string => `header:${field.toLowerCase()}`

function attributes(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map(pair => {
      const [key = '', ...value] = pair.split('=')
      if (key === '' || value.length === 0)
        throw new PenError('USAGE', {
          what: 'not an attribute',
          at: '--keyring',
          hint: 'write --keyring service=NAME, as for secret-tool lookup',
        })
      return [key, value.join('=')]
    }),
  )
}
