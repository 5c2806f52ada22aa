import { PenError } from '../../../base/error.ts'
import { nearest } from '../../../base/nearest.ts'
import { printable } from '../../../base/printable.ts'
import { loadPolicy } from '../../../config/load.ts'
import { readSecret } from '../../../run/secrets/secret-values.ts'
import { isReplaceable } from '../../../run/secrets/visible-source.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'secret test',
  summary: 'Read a secret from its source, print no value',
  details: 'Does what a start does: reads the variable or file, or runs the command. Prints only the length.',
  positionals: { name: { arity: 'one', about: 'the name of the secret' } },
  examples: { 'pen secret test GH_TOKEN': 'check that the source works' },
  async run({ positionals: { name }, env, project, answer }) {
    const { policy } = await loadPolicy(project, { flags: {}, offline: false, allowUserExpansion: false })
    const names = policy.network.secrets.map(({ rule }) => rule.name)
    const secret = policy.network.secrets.find(({ rule }) => rule.name === name)?.rule
    if (secret === undefined) {
      const meant = nearest(name, names)
      throw new PenError('USAGE', {
        what: `there is no secret "${printable(name, 80)}"`,
        at: 'pen secret test',
        hint: meant === undefined ? 'pen secret list' : `did you mean ${meant}?`,
      })
    }
    const world = { env, isReplaceable: (program: string) => isReplaceable(program, policy) }
    const values = (await readSecret(secret, world)).map(({ variable, value: { length } }) => ({
      variable,
      length,
    }))
    answer(
      { name, length: values[0]?.length, values },
      values.map(
        ({ variable, length }) => `${variable}: the source works; the value has ${length} characters`,
      ),
    )
  },
})
