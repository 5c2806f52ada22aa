import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { schemaText } from './schema.ts'

test('the schema that is printed is the one that is shipped, to the byte', () => {
  expect(schemaText()).toBe(
    readFileSync(join(import.meta.dir, '../../../../docs/reference/config.schema.json'), 'utf8'),
  )
})
