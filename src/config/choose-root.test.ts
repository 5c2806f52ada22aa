import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PenError } from '../base/error.ts'
import { chooseRoot } from './choose-root.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-roots-')))
for (const name of ['src/app/sub', 'src/lib', 'src/application', 'other'])
  mkdirSync(join(base, name), { recursive: true })
symlinkSync(join(base, 'other'), join(base, 'src/link'))
afterAll(() => rmSync(base, { recursive: true }))

const src = join(base, 'src')
const uri = (path: string): string => pathToFileURL(join(base, path)).href
const choose = (roots: string[], named = false, directory = src): string =>
  chooseRoot({ directory, named }, roots)

describe('the roots of a client', () => {
  test('choose a directory inside what pen was started with', () => {
    expect(choose([uri('src/app')])).toBe(join(src, 'app'))
    expect(choose([uri('src/app'), uri('other')])).toBe(join(src, 'app'))
    expect(choose([uri('src/app'), uri('src/app/sub')])).toBe(join(src, 'app'))
    expect(choose([uri('src/app'), uri('src/application')])).toBe(src)
    expect(choose([uri('src/app')], false, '/')).toBe(join(src, 'app'))
  })

  test('change nothing where they are above it, the same, or no directories of this machine', () => {
    expect(choose([uri('')])).toBe(src)
    expect(choose([uri('src')])).toBe(src)
    expect(choose([uri('src/app'), uri('src')])).toBe(src)
    expect(choose([])).toBe(src)
    expect(choose(['https://example.com/', 'file:///absent', 'nonsense', 'file://host/x'])).toBe(src)
  })

  test('never lead out of it: a project that the user named stays, and otherwise the tools are refused', () => {
    expect(choose([uri('other')], true)).toBe(src)
    expect(() => choose([uri('other')])).toThrow(PenError)
    expect(() => choose([uri('src/link')])).toThrow(PenError)
    expect(choose([uri('src/link')], true)).toBe(src)
  })
})
