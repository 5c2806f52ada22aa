/**
 * The parts of the tool policy that only the process backend has. test/conformance/tools.test.ts covers all
 * backends.
 */
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { forEachUser, PEN, preparePen, removePen } from './run-tools.ts'

beforeAll(preparePen)
afterAll(removePen)

describe('tools.allow', () => {
  forEachUser('P12 npm works when node is listed beside it', project => {
    if (!existsSync('/usr/bin/npm')) return
    const { code, out } = project({ allow: ['npm', 'node'] })(['npm', '--version'])
    expect([code, /^\d+\./.test(out)]).toEqual([0, true])
    expect(project({ allow: ['npm'] })(['npm', '--version']).code).toBe(127)
  })

  forEachUser('P12 a plan notes what a listed script needs, and what the machine lacks', project => {
    const notes = (...allow: string[]) => project({ allow, shell: false })(['git'], { verb: 'plan' }).out
    expect(notes('no-such-tool', 'sh')).toContain('tools.allow lists no-such-tool, which the system does not')
    expect(notes('sh')).toContain('tools.allow lists sh, but it is a shell and tools.shell is false')
    expect(notes('git')).not.toContain('note: ')
    if (!existsSync('/usr/bin/npm')) return
    expect(notes('npm')).toContain('npm needs node: list it too')
    expect(notes('npm', 'node')).not.toContain('note: ')
  })
})

describe('tools.shell', () => {
  forEachUser('P12 without a shell pen run needs a command, and says so', project => {
    const { code, err } = project({ shell: false })([])
    expect(code).toBe(127)
    expect(err).toContain('this policy has none (tools.shell is false)')
    expect(err).toContain('pen run -- COMMAND')
  })
})

describe('tools.exec "listed"', () => {
  forEachUser('P12 guest mode starts nothing without an order', () => {
    for (const env of [{}, { AGENT_IN_SANDBOX: '1' }]) {
      const { status, stderr } = spawnSync(PEN, ['__listed', '8', '9'], { env, encoding: 'utf8' })
      expect([status, stderr.includes('is not a verb')]).toEqual([2, true])
    }
  })

  forEachUser('P20 a pen that cannot enforce it stops, unless the gap is accepted by name', project => {
    const source = [process.execPath, join(import.meta.dir, '../../src/main.ts')]
    const { code, err } = project({ exec: 'listed' })(['true'], { pen: source })
    expect([code, err.includes('--accept-gap exec-unlisted')]).toEqual([125, true])
    expect(project({ exec: 'any' })(['true'], { pen: source }).code).toBe(0)
  })
})
