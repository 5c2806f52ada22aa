import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyDocument, layerOf } from '../../../test/arbitrary/layer.ts'
import { type JsonValue, printJson, readJson } from './json.ts'

test('a config that pen prints, it reads again as the same config', () => {
  fc.assert(
    fc.property(anyDocument('user'), document => {
      const text = printJson(document as JsonValue)
      const { value } = readJson(new TextEncoder().encode(text), 'config.json')
      expect(JSON.stringify(value)).toBe(JSON.stringify(document))
      expect(printJson(value)).toBe(text)
      expect(layerOf(value as object, 'user')).toEqual(layerOf(document, 'user'))
    }),
    { numRuns: 200 },
  )
})
