import schema from '../../../../docs/reference/config.schema.json'
import { EXIT } from '../../../base/error.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

/** As it is shipped, to the byte. */
export const schemaText = (): string => `${JSON.stringify(schema, undefined, 2)}\n`

export const verb = defineVerb({
  name: 'config schema',
  summary: 'Print the JSON schema of the config, for editors',
  flags: jsonFlag,
  examples: [{ line: 'pen config schema > config.schema.json', does: 'a file to point "$schema" at' }],
  insideSandbox: 'allow',
  async run({ terminal }) {
    terminal.print(schemaText())
    return EXIT.ok
  },
})
