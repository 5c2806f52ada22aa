import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countTests } from '../../scripts/count-tests.ts'
import { SUITES } from '../../scripts/suites.ts'
import { ROOT, read } from './sources.ts'

describe('npm test', () => {
  test('counts what passed, failed and was skipped in a report of bun test', () => {
    const report = bunTest(`
      test('holds', () => {})
      describe('group', () => { test('does "not" hold', () => { expect(1).toBe(2) }) })
      skipUnless(false, 'the engine is missing')('needs an engine', () => {})
      skipUnless(true, 'the engine is missing')('has its engine', () => {})`)
    const { passed, skipped, failures } = countTests(report)
    expect([passed, skipped, failures.length]).toEqual([2, 1, 1])
    expect(failures[0]?.text).toContain('group › does "not" hold')
    expect(failures[0]?.test?.name).toBe('does "not" hold')
  })

  test('lets nothing be skipped with PEN_REQUIRE_ALL=1', () => {
    const { passed, skipped, failures } = countTests(
      bunTest(`skipUnless(false, 'the engine is missing')('needs an engine', () => {})`, {
        PEN_REQUIRE_ALL: '1',
      }),
    )
    expect([passed, skipped, failures.length]).toEqual([0, 0, 1])
  })

  test('does not take an empty report for a good one', () => {
    expect(() => countTests('')).toThrow()
  })

  test('runs every folder of tests', () => {
    const folders = SUITES.flatMap(suite => (suite.kind === 'suite' ? [suite.folder] : []))
    for (const name of ['repo', 'golden', 'fuzz', 'conformance', 'attack'])
      expect(folders).toContain(`./test/${name}`)
  })

  test('is what CI runs, with the switch that forbids skips', () => {
    const lines = read('.ci/run')
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
    expect(lines.slice(-2)).toEqual(['export PEN_REQUIRE_ALL=1', 'exec npm test'])
  })
})

function bunTest(body: string, env: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'pen-runner-'))
  try {
    const report = join(folder, 'report.xml')
    const head = `import { describe, expect, test } from 'bun:test'\nimport { skipUnless } from '${ROOT}/test/skip.ts'\n`
    writeFileSync(join(folder, 'x.test.ts'), head + body)
    Bun.spawnSync([process.execPath, 'test', '--reporter=junit', `--reporter-outfile=${report}`, '.'], {
      cwd: folder,
      env: { ...process.env, PEN_REQUIRE_ALL: '', ...env },
    })
    return readFileSync(report, 'utf8')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
