import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { policyOf } from '../../../test/arbitrary/policy.ts'
import type { SystemEntry } from '../../plan/facts.ts'
import { NO_TOOL_FACTS } from './survey.ts'
import { surveyHostTools } from './survey-host.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-tools-')))
afterAll(() => rmSync(root, { recursive: true, force: true }))

function program(path: string, text = 'x', mode = 0o755): string {
  const at = join(root, path)
  mkdirSync(dirname(at), { recursive: true })
  writeFileSync(at, text)
  chmodSync(at, mode)
  return at
}
const link = (path: string, to: string) => symlinkSync(to, join(root, path))

program('kit/bin/alpha')
program('kit/bin/script', '#!/usr/bin/env interpreter\n')
program('kit/bin/plain', 'x', 0o644)
link('kit/bin/beta', 'gamma')
link('kit/bin/gamma', '../lib/suite/bin/delta')
program('kit/lib/suite/bin/delta')
program('kit/lib/suite/passes/one')
program('kit/lib/node_modules/pkg/bin/tool')
program('kit/lib/a/b/c/d/bin/deep')
link('kit/bin/nowhere', 'absent')
link('kit/bin/round', 'round')
program('kit/bin/dash')
link('kit/bin/sh', 'dash')
linkSync(join(root, 'kit/bin/dash'), join(root, 'kit/bin/innocent'))

const system: SystemEntry[] = [{ kind: 'tree', path: join(root, 'kit') as never }]
const survey = (tools: object) => surveyHostTools(policyOf({ tools }), system, [join(root, 'kit/bin')])
const find = (name: string) => survey({ allow: [name] }).found.find(tool => tool.name === name)

describe('a survey of tools', () => {
  test('reads nothing when the policy restricts no tools', () => {
    expect(survey({})).toEqual(NO_TOOL_FACTS)
  })

  test('finds directories of programs, but not those of packages or too deep ones', () => {
    expect(survey({ allow: [] }).directories.toSorted()).toEqual([
      join(root, 'kit/bin'),
      join(root, 'kit/lib/suite/bin'),
    ])
  })

  test('finds one among hundreds of directories side by side', () => {
    const crowd = join(root, 'crowd')
    for (let i = 0; i < 450; i++) mkdirSync(join(crowd, `v${i}`), { recursive: true })
    program('crowd/v7/bin/hidden')
    const system: SystemEntry[] = [{ kind: 'tree', path: crowd as never }]
    const { directories } = surveyHostTools(policyOf({ tools: { allow: [] } }), system, [])
    expect(directories).toEqual([join(crowd, 'v7/bin')])
  })

  test('follows links one by one to the file', () => {
    expect(find('alpha')).toMatchObject({ links: [], file: join(root, 'kit/bin/alpha') })
    expect(find('beta')).toMatchObject({
      links: [
        { at: join(root, 'kit/bin/beta'), to: 'gamma' },
        { at: join(root, 'kit/bin/gamma'), to: '../lib/suite/bin/delta' },
      ],
      file: join(root, 'kit/lib/suite/bin/delta'),
    })
  })

  test('knows the tree of a toolchain', () => {
    expect(find('beta')?.companions).toEqual([join(root, 'kit/lib/suite')])
    expect(find('alpha')?.companions).toEqual([])
  })

  test.each(['no-such-tool', 'plain', 'nowhere', 'round'])('misses %s', name => {
    expect(survey({ allow: [name, 'alpha'] }).missing).toEqual([name])
    expect(survey({ allow: [name, 'alpha'] }).found.map(tool => tool.name)).toEqual(['alpha'])
  })

  test('includes env for a script that starts through it, and names the interpreter', () => {
    const { found } = survey({ allow: ['script'] })
    expect(found.map(tool => [tool.name, tool.needs, tool.implied])).toEqual([
      ['script', 'interpreter', false],
      ['env', undefined, true],
    ])
    expect(survey({ allow: ['alpha'] }).found.map(tool => tool.name)).toEqual(['alpha'])
  })

  test('knows a shell behind any name', () => {
    expect(find('sh')?.shell).toBe(true)
    expect(find('alpha')?.shell).toBe(false)
    expect(survey({ shell: false }).shells.toSorted()).toEqual([
      join(root, 'kit/bin/dash'),
      join(root, 'kit/bin/innocent'),
    ])
  })
})
