import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HostPath } from '../../policy/files/path.ts'
import { type AdoptOptions, adoptRepository, firstBranch, makeHostRepository } from './adopt.ts'

test.each([
  ['ref: refs/heads/trunk\n', 'trunk'],
  ['ref: refs/heads/a/b-1.x\n', 'a/b-1.x'],
  ['ref: refs/heads/HEAD\n', 'main'],
  ['ref: refs/heads/deadbeef\n', 'main'],
  ['ref: refs/heads/refs/heads/x\n', 'main'],
  ['ref: refs/heads/-x\n', 'main'],
  ['ref: refs/heads/a\n\n', 'main'],
  ['', 'main'],
])('the first branch of a repository from a sandbox: %j', (head, branch) => {
  expect(firstBranch(head)).toBe(branch)
})

test('where no repository was taken, nothing is adopted', async () => {
  const world = { sandbox: { stateDir: '/proc/nonexistent' } }
  expect(await adoptRepository({ workspace: '/', world } as unknown as AdoptOptions, 'run')).toEqual([])
})

describe('the repository of the host', () => {
  let base = ''
  beforeEach(() => {
    base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-adopt-')))
    chmodSync(base, 0o755)
    for (const dir of ['ws', 'entry/dir', 'elsewhere']) mkdirSync(`${base}/${dir}`, { recursive: true })
    writeFileSync(`${base}/entry/dir/HEAD`, 'ref: refs/heads/trunk\n')
  })
  afterEach(() => rmSync(base, { recursive: true, force: true }))

  const make = (): Promise<void> =>
    makeHostRepository(`${base}/ws`, `${base}/entry/dir` as HostPath, `${base}/entry`)

  test('appears in one step, with the branch of the sandbox and the owner of the project', async () => {
    if (process.getuid?.() === 0) chownSync(`${base}/ws`, 1, 1)
    await make()
    expect(readFileSync(`${base}/ws/.git/HEAD`, 'utf8')).toBe('ref: refs/heads/trunk\n')
    const owners = ['.git', '.git/objects', '.git/config'].map(path => statSync(`${base}/ws/${path}`).uid)
    expect(new Set(owners)).toEqual(new Set([statSync(`${base}/ws`).uid]))
    expect(readdirSync(`${base}/ws`)).toEqual(['.git'])
  })

  test('does not follow a link that was put in its place', async () => {
    symlinkSync('../elsewhere', `${base}/ws/.git`)
    await expect(make()).rejects.toThrow()
    expect(readdirSync(`${base}/elsewhere`)).toEqual([])
  })

  test('is not made around a hook that was put in its place', async () => {
    mkdirSync(`${base}/ws/.git/hooks`, { recursive: true })
    writeFileSync(`${base}/ws/.git/hooks/pre-commit`, 'evil')
    await expect(make()).rejects.toThrow()
    expect(readdirSync(`${base}/ws/.git`)).toEqual(['hooks'])
  })
})
