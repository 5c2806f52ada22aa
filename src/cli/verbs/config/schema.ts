import schema from '../../../../docs/reference/config.schema.json'
import { EXIT } from '../../../base/error.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

/** Equal to the shipped file, byte for byte. */
export const schemaText = (): string => `${JSON.stringify(schema, undefined, 2)}\n`

export const verb = defineVerb({
  name: 'config schema',
  summary: 'Print the JSON schema of the config, for editors',
  flags: jsonFlag,
  examples: [{ line: 'pen config schema > config.schema.json', does: 'write a file for "$schema"' }],
  insideSandbox: 'allow',
  async run({ terminal }) {
    terminal.print(schemaText())
    return EXIT.ok
  },
})
