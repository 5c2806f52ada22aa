import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingTool } from './missing-tool.ts'

const dir = mkdtempSync(join(tmpdir(), 'pen-missing-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const refusalOf = (name: string) => {
  const { code, message, hint } = missingTool(name, 'install it', [{ path: dir, owner: 'root' }])
  return [code, message, hint]
}

describe('a program that pen may not run', () => {
  test('is absent or not executable: the fix installs it', () => {
    const words = 'is not installed, or not in a directory that only root can write'
    writeFileSync(join(dir, 'text'), '', { mode: 0o644 })
    for (const name of ['absent', 'text', 'text/below'])
      expect(refusalOf(name)).toEqual(['MISSING_TOOL', `${name} ${words}`, 'install it'])
  })
  test('exists but others can change it: installing it again would not help', () => {
    writeFileSync(join(dir, 'tool'), '', { mode: 0o755 })
    const [code, message, hint] = refusalOf('tool')
    expect([code, message]).toEqual([
      'MISSING_TOOL',
      `${dir}/tool exists, but users other than root can replace or change it`,
    ])
    expect(hint).toBe(
      `chown root ${dir}/tool && chmod go-w ${dir}/tool, and the same for every directory above it`,
    )
  })
})
