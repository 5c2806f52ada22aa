import schema from '../../../../docs/reference/config.schema.json'
import { defineVerb } from '../../frame/verb.ts'

/** Equal to the shipped file, byte for byte. */
export const schemaText = (): string => `${JSON.stringify(schema, undefined, 2)}\n`

export const verb = defineVerb({
  name: 'config schema',
  summary: 'Print the JSON schema of the config, for editors',
  examples: {
    'pen config schema > config.schema.json': 'write a file for "$schema"',
  },
  insideSandbox: 'allow',
  async run({ terminal }) {
    terminal.print(schemaText())
  },
})
