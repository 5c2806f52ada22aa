import { describe, expect, test } from 'bun:test'
import { GENERATED } from '../../scripts/schema.ts'
import { configSchema } from '../../src/policy/schema.ts'
import { read } from './sources.ts'

describe('generated files', () => {
  test.each(Object.entries(GENERATED))('%s is up to date: else run `npm run generate`', (path, make) => {
    expect(read(path)).toBe(make())
  })

  test('the schema refuses what the validator refuses: unknown keys, at every level', () => {
    const open: string[] = []
    const walk = (at: Record<string, unknown>, path: string): void => {
      if ('properties' in at && at['additionalProperties'] !== false) open.push(path)
      for (const [key, value] of Object.entries(at))
        if (typeof value === 'object' && value !== null)
          walk(value as Record<string, unknown>, `${path}/${key}`)
    }
    walk(JSON.parse(read('docs/reference/config.schema.json')) as Record<string, unknown>, '')
    expect(open).toEqual([])
  })

  test('the reference describes every key of the config', () => {
    const page = read('docs/reference/config.md')
    const missing = Object.keys(configSchema.entries).filter(key => !page.includes(`\`${key}`))
    expect(missing).toEqual([])
    expect(page).not.toMatch(/\|\s+\| [^|]*\|[^|]*\|[^|]*\|$/m)
  })
})
