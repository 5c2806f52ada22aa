import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
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
import { skipUnless } from '../../../test/skip.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { makeHostRepository } from './adopt.ts'
import { keepAdopted, takenTo, takeRepository } from './take-repository.ts'

let base = ''
let ws = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-take-')))
  ws = `${base}/ws`
})
afterEach(() => {
  for (const dir of [base, ws]) rmSync(dir, { recursive: true, force: true })
})

/** As `git init` makes it, with a ref that does not cross. */
function made(): void {
  for (const dir of ['objects', 'refs/wip', 'hooks']) mkdirSync(`${ws}/.git/${dir}`, { recursive: true })
  for (const [name, text] of Object.entries({
    HEAD: 'ref: refs/heads/trunk\n',
    'refs/wip/one': 'id\n',
    config: '[core]\n\tfsmonitor = evil\n',
    'hooks/pre-commit': 'evil',
  }))
    writeFileSync(`${ws}/.git/${name}`, text)
}

const take = (): string | undefined => takeRepository(ws, `${base}/state`, 'run')
const entry = (): string => takenTo(`${base}/state`, 'run')
const inProject = (): readonly string[] => readdirSync(ws).filter(name => name.startsWith('.git'))

test('a locked repository is taken, and can be read afterwards; without one there is nothing to take', () => {
  mkdirSync(ws)
  expect([take(), existsSync(entry())]).toEqual([undefined, false])
  made()
  chmodSync(`${ws}/.git/HEAD`, 0)
  for (const dir of ['.git/refs/wip', '.git/refs', '.git', '.']) chmodSync(`${ws}/${dir}`, 0o100)
  expect(take()).toBeUndefined()
  chmodSync(ws, 0o755)
  expect(inProject()).toEqual([])
  expect(readFileSync(`${entry()}/dir/HEAD`, 'utf8')).toBe('ref: refs/heads/trunk\n')
  expect(readFileSync(`${entry()}/dir/refs/wip/one`, 'utf8')).toBe('id\n')
})

test('what cannot be taken gets a name that git does not read, and nothing of it is lost', () => {
  made()
  // Something is in the way, as on a full disk or after a killed run.
  mkdirSync(`${entry()}/dir/full`, { recursive: true })
  const line = take() ?? ''
  const [aside = ''] = inProject()
  expect(line).toContain(aside)
  expect(aside).toMatch(/^\.git\.made-[0-9a-f-]{36}$/)
  expect(readdirSync(`${ws}/${aside}`).sort()).toEqual(['HEAD', 'config', 'hooks', 'objects', 'refs'])
})

test('a link in place of .git is not taken, and not followed', () => {
  mkdirSync(`${base}/elsewhere`)
  mkdirSync(ws)
  symlinkSync('../elsewhere', `${ws}/.git`)
  expect([take(), inProject(), existsSync(entry())]).toEqual([undefined, ['.git'], false])
})

test('when all is on the host, the repository is kept in the quarantine without settings in it', () => {
  made()
  take()
  expect(keepAdopted(entry()).join()).toContain(`${base}/state/quarantine/run`)
  const kept = `${base}/state/quarantine/run`
  expect(readdirSync(kept).sort()).toEqual(['git', 'git-config', 'git-hooks'])
  expect(readdirSync(`${kept}/git`).sort()).toEqual(['HEAD', 'objects', 'refs'])
  expect(readFileSync(`${kept}/git/refs/wip/one`, 'utf8')).toBe('id\n')
})

const SHM = '/dev/shm'
const isOther = existsSync(SHM) && statSync(SHM).dev !== statSync(tmpdir()).dev
skipUnless(isOther, 'no second file system at /dev/shm')(
  'a repository on another file system is copied, and the new one comes to it',
  async () => {
    ws = mkdtempSync(`${SHM}/pen-take-`)
    made()
    expect(take()).toBeUndefined()
    expect(inProject()).toEqual([])
    expect(readFileSync(`${entry()}/dir/refs/wip/one`, 'utf8')).toBe('id\n')
    await makeHostRepository(ws, `${entry()}/dir` as HostPath, entry())
    expect(inProject()).toEqual(['.git'])
    expect(readFileSync(`${ws}/.git/HEAD`, 'utf8')).toBe('ref: refs/heads/trunk\n')
    expect(readFileSync(`${ws}/.git/config`, 'utf8')).not.toContain('evil')
  },
)
