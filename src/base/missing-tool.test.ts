import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingTool } from './missing-tool.ts'

const dir = mkdtempSync(join(tmpdir(), 'pen-missing-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const told = (name: string) => {
  const { code, message, hint } = missingTool(name, 'install it', [{ path: dir, owner: 'root' }])
  return [code, message, hint]
}

describe('a program that pen may not run', () => {
  test('is not there, or nothing that executes: the fix installs it', () => {
    const words = 'is not installed, or not where only root could have put it'
    writeFileSync(join(dir, 'text'), '', { mode: 0o644 })
    for (const name of ['absent', 'text', 'text/below'])
      expect(told(name)).toEqual(['MISSING_TOOL', `${name} ${words}`, 'install it'])
  })
  test('is there, and not root’s alone: to install it again would not help', () => {
    writeFileSync(join(dir, 'tool'), '', { mode: 0o755 })
    const [code, message, hint] = told('tool')
    expect([code, message]).toEqual([
      'MISSING_TOOL',
      `${dir}/tool is there, but others than root could have put or changed it`,
    ])
    expect(hint).toStartWith('make it root’s own')
  })
})
