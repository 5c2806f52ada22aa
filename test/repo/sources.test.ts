/** The rules depend on this reader. */
import { describe, expect, test } from 'bun:test'
import { codeOf, importsOf } from './sources.ts'

describe('the reader of imports', () => {
  const found = (text: string): readonly string[] =>
    importsOf('src/policy/x.ts', text).map(i => i.file ?? i.specifier)

  test.each([
    ["import { a } from '../base/a.ts'", 'src/base/a.ts'],
    ["import {\n  a,\n  type B,\n} from './b.ts'", 'src/policy/b.ts'],
    ["import * as fs from 'node:fs'", 'node:fs'],
    ["import 'node:net'", 'node:net'],
    ["export { c } from './c.ts'", 'src/policy/c.ts'],
    ["export * from './d.ts'", 'src/policy/d.ts'],
    ["const { spawn } = await import('node:child_process')", 'node:child_process'],
    ["const x = require('node:os')", 'node:os'],
  ])('sees %j', (text, expected) => {
    expect(found(text)).toEqual([expected])
  })

  test('recognizes an import that leaves nothing at run time', () => {
    expect(importsOf('src/x.ts', "import type { A } from 'node:fs'")[0]?.typeOnly).toBe(true)
    expect(importsOf('src/x.ts', "import { A } from 'node:fs'")[0]?.typeOnly).toBe(false)
  })

  test('takes no comment for an import', () => {
    expect(found("/* import 'node:fs' */\n// import 'node:net'\nlet x = 1")).toEqual([])
  })
})

describe('the reader of code', () => {
  test('drops comments and strings, and keeps the rest', () => {
    expect(codeOf("a('process.exit') // process.exit\n/* process.exit */ process.exit(1)")).toBe(
      "a('') \n process.exit(1)",
    )
  })
})
