/**
 * The four minimum acceptance tests of an agent's sandbox, through the gate: secret reads, outside writes,
 * network, tools.
 */
import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { onlyWhen } from '../skip.ts'
import { gateBox, reasonOf } from './gate-box.ts'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

describe('reading through the gate', () => {
  test('returns a file of the workspace, and records it first', async () => {
    using box = await gateBox({})
    box.project.write('src/a.txt', 'hello')
    const { bytes, truncated } = await box.gate.read('src/a.txt')
    expect(text(bytes)).toBe('hello')
    expect(truncated).toBe(false)
    expect(box.of('file-allowed')).toMatchObject([
      { access: 'read', path: join(box.project.workspace, 'src/a.txt'), from: 'profile coding' },
    ])
  })

  test('refuses secrets: of the home, of the workspace, by any spelling and through links', async () => {
    using box = await gateBox({})
    mkdirSync(join(box.project.home, '.ssh'))
    writeFileSync(join(box.project.home, '.ssh/id'), 'secret')
    box.project.write('.env', 'secret')
    symlinkSync('../.ssh/id', join(box.project.workspace, 'innocent'))
    symlinkSync('../.ssh', join(box.project.workspace, 'dir'))
    symlinkSync('.env', join(box.project.workspace, 'settings'))
    for (const path of ['~/.ssh/id', '../.ssh/id', 'src/../../.ssh/id', 'innocent', 'dir/id', '/etc/shadow'])
      expect([path, await reasonOf(box.gate.read(path))]).toEqual([path, 'not-granted'])
    for (const path of ['.env', './.env', 'settings'])
      expect([path, await reasonOf(box.gate.read(path))]).toEqual([path, 'denied-by-rule'])
    expect(await reasonOf(box.gate.list('~/.ssh', 10))).toBe('not-granted')
    expect(box.of('file-denied')).toHaveLength(10)
    expect(box.of('file-allowed')).toEqual([])
  })

  test('a refusal names the command for the sandbox that was refused', async () => {
    using box = await gateBox({}, { sandbox: 'fix-a', grants: () => [] })
    writeFileSync(join(box.project.root, 'notes'), 'text')
    await reasonOf(box.gate.read(join(box.project.root, 'notes')))
    expect(box.of('file-denied')[0]?.fix).toStartWith('pen grant --name fix-a ')
  })

  test('refuses what is denied at any depth, also in a directory that was made or moved since', async () => {
    using box = await gateBox({ files: { deny: ['**/.env', '**/vault/'] } })
    const { workspace } = box.project
    for (const path of ['a/b/.env', 'a/b/twin', 'c/vault/in']) box.project.write(path, 'text')
    const denied = async (...paths: string[]): Promise<void> => {
      for (const path of paths)
        expect([path, await reasonOf(box.gate.read(path))]).toEqual([path, 'denied-by-rule'])
    }
    await denied('a/b/.env', 'c/vault/in')
    box.project.write('new/deep/.env', 'text')
    renameSync(join(workspace, 'a'), join(workspace, 'z'))
    await denied('new/deep/.env', 'z/b/.env')
    expect(await reasonOf(box.gate.write('new/.env', 'x'))).toBe('denied-by-rule')
    expect(text((await box.gate.read('z/b/twin')).bytes)).toBe('text')
  })

  test('is cut at the policy’s limit, and does not block on a pipe', async () => {
    using box = await gateBox({ exec: { maxOutput: '1KiB' } })
    box.project.write('long', 'x'.repeat(5000))
    const { bytes, truncated } = await box.gate.read('long', { maxBytes: 1e9 })
    expect([bytes.length, truncated]).toEqual([1024, true])
    Bun.spawnSync(['mkfifo', join(box.project.workspace, 'pipe')])
    expect(box.gate.read('pipe')).rejects.toThrow('not a plain file')
  })
})

describe('writing through the gate', () => {
  test('makes and replaces files in the workspace, and changes no hard link elsewhere', async () => {
    using box = await gateBox({})
    await box.gate.write('new/deep/file', 'one')
    const file = join(box.project.workspace, 'new/deep/file')
    const elsewhere = join(box.project.root, 'elsewhere')
    linkSync(file, elsewhere)
    await box.gate.write('new/deep/file', 'two')
    expect([readFileSync(file, 'utf8'), readFileSync(elsewhere, 'utf8')]).toEqual(['two', 'one'])
    expect(box.of('file-allowed').map(({ access }) => access)).toEqual(['write', 'write'])
    expect((await box.gate.list('new/deep', 10)).entries.map(({ name }) => name)).toEqual(['file'])
  })

  test('a listing has as many names as were asked for, and says how many are left out', async () => {
    using box = await gateBox({})
    for (const name of ['c', 'a', 'b']) box.project.write(`full/${name}`, '')
    const names = async (most: number) => {
      const { entries, more } = await box.gate.list('full', most)
      return [...entries.map(({ name }) => name), more]
    }
    expect(await names(2)).toEqual(['a', 'b', 1])
    expect(await names(3)).toEqual(['a', 'b', 'c', 0])
  })

  test('refuses everything outside, and what the host would run later', async () => {
    using box = await gateBox({})
    symlinkSync(box.project.home, join(box.project.workspace, 'out'))
    symlinkSync('/nowhere/yet', join(box.project.workspace, 'dangling'))
    for (const path of ['../x', '~/.bashrc', '/tmp/x', 'out/x', 'dangling'])
      expect([path, await reasonOf(box.gate.write(path, 'x'))]).toEqual([path, 'not-granted'])
    for (const path of ['.git/hooks/post-commit', '.vscode/tasks.json', '.pen/config.json'])
      expect([path, await reasonOf(box.gate.write(path, 'x'))]).toEqual([path, 'protected'])
    expect(existsSync(join(box.project.home, 'x'))).toBe(false)
    expect(box.of('file-allowed')).toEqual([])
  })

  test('of the strict profile reaches ./output alone', async () => {
    using box = await gateBox({ profile: 'strict' })
    expect(await reasonOf(box.gate.write('a', 'x'))).toBe('read-only')
    await box.gate.write('output/a', 'x')
    expect(readFileSync(join(box.project.workspace, 'output/a'), 'utf8')).toBe('x')
  })
})

describe('deleting through the gate', () => {
  test('removes one file, one link or an empty directory, never the target of a link', async () => {
    using box = await gateBox({})
    writeFileSync(join(box.project.home, 'kept'), '')
    symlinkSync('../kept', join(box.project.workspace, 'link'))
    box.project.write('d/file', '')
    await box.gate.delete('link')
    expect(existsSync(join(box.project.home, 'kept'))).toBe(true)
    expect(box.gate.delete('d')).rejects.toThrow('ENOTEMPTY')
    await box.gate.delete('d/file')
    await box.gate.delete('d')
    expect(await reasonOf(box.gate.delete('../kept'))).toBe('not-granted')
  })

  test('recursively is off unless the user lists rm, and is all or nothing', async () => {
    using box = await gateBox({})
    box.project.write('d/a/b', '')
    expect(await reasonOf(box.gate.delete('d', { recursive: true }))).toBe('not-granted')
    expect(existsSync(join(box.project.workspace, 'd/a/b'))).toBe(true)
    using allowed = await gateBox({ tools: { allow: ['rm'] }, files: { deny: ['d/z/secret'] } })
    allowed.project.write('d/a/b', '')
    symlinkSync('/', join(allowed.project.workspace, 'd/root'))
    allowed.project.write('d/z/secret', '')
    expect(await reasonOf(allowed.gate.delete('d', { recursive: true }))).toBe('denied-by-rule')
    expect(existsSync(join(allowed.project.workspace, 'd/a/b'))).toBe(true)
    await allowed.gate.delete('d/a', { recursive: true })
    expect(existsSync(join(allowed.project.workspace, 'd/a'))).toBe(false)
    expect(allowed.of('file-allowed')).toMatchObject([{ access: 'delete', names: 2 }])
  })

  test('recursively fails by the name of the error, and a refusal comes before a look at the path', async () => {
    using box = await gateBox({ tools: { allow: ['rm'] }, files: { deny: ['secret'] } })
    await expect(box.gate.delete('absent', { recursive: true })).rejects.toMatchObject({ errno: 'ENOENT' })
    await expect(box.gate.delete('none/absent', { recursive: true })).rejects.toMatchObject({
      errno: 'ENOENT',
    })
    expect(await reasonOf(box.gate.delete('secret/absent', { recursive: true }))).toBe('denied-by-rule')
    expect(box.of('file-allowed')).toEqual([])
  })
})

describe('programs through the gate', () => {
  test('are refused while the user lists none, a shell also when it is listed', async () => {
    using box = await gateBox({})
    for (const argv of [['cat', '/etc/passwd'], ['sh', '-c', 'true'], ['./evil'], ['/bin/cat']])
      expect(await reasonOf(async () => box.gate.exec(argv))).toBeOneOf([
        'not-listed',
        'shell-off',
        'not-found',
      ])
    using listed = await gateBox({ tools: { allow: ['sh', 'cat'] } })
    expect(await reasonOf(async () => listed.gate.exec(['sh', '-c', 'true']))).toBe('shell-off')
    expect(await reasonOf(async () => listed.gate.exec(['head', '-c1']))).toBe('not-listed')
    expect(listed.of('tool-denied')).toMatchObject([{ reason: 'shell-off' }, { reason: 'not-listed' }])
    expect(listed.of('tool-allowed')).toEqual([])
  })

  test('that are listed may run, by name or by their own path, and are started by that path', async () => {
    using box = await gateBox({ tools: { allow: ['env', 'cat'] } })
    const env = box.gate.exec(['env', '-0'], { env: { MORE: '1', SOFT_SANDBOX: 'no' } })
    expect(env).toEqual({
      argv: ['/usr/bin/env', '-0'],
      cwd: box.policy.workspace,
      env: { MORE: '1', AGENT_IN_SANDBOX: '1', SOFT_SANDBOX: 'true' },
    })
    expect(box.gate.exec(['/bin/cat', '-']).argv).toEqual(['/bin/cat', '-'])
    box.project.write('cat', '#!/usr/bin/env node')
    expect(await reasonOf(async () => box.gate.exec(['./cat']))).toBeOneOf(['not-found', 'not-listed'])
    expect(box.of('tool-allowed').map(({ program }) => program)).toEqual(['/usr/bin/env', '/bin/cat'])
  })

  test('do not run outside of the workspace, nor with a variable of a bad name', async () => {
    using box = await gateBox({ tools: { allow: ['cat'] } })
    expect(await reasonOf(async () => box.gate.exec(['cat'], { cwd: '/tmp' }))).toBe('not-granted')
    expect(() => box.gate.exec(['cat'], { env: { 'A=B': '1' } })).toThrow('bad name')
    expect(box.of('tool-allowed')).toEqual([])
  })
})

describe('what cannot be recorded', () => {
  test('is not done, whatever it is', async () => {
    const audit = {
      record: () => {
        throw new Error('the disk is full')
      },
    }
    using box = await gateBox({ tools: { allow: ['touch', 'rm'] } }, { audit })
    box.project.write('a', 'x')
    const { gate } = box
    for (const act of [
      () => gate.read('a'),
      () => gate.write('b', ''),
      () => gate.list('.', 10),
      () => gate.delete('a'),
      () => gate.delete('a', { recursive: true }),
      async () => gate.exec(['touch', 'c']),
    ])
      await expect(act()).rejects.toThrow('the disk is full')
    expect(readdirSync(box.project.workspace)).toEqual(['a'])
  })
})

describe('root’s gate', () => {
  const OWNER = { uid: 64_398, gid: 64_398 }
  const asRoot = onlyWhen(process.getuid?.() === 0)

  asRoot('does for the owner of the project what they may do, and gives them what it makes', async () => {
    using box = await gateBox({}, { runAs: OWNER })
    const { workspace, root, home } = box.project
    for (const path of [root, home]) chmodSync(path, 0o755)
    chownSync(workspace, OWNER.uid, OWNER.gid)
    await box.gate.write('made/file', 'x')
    for (const path of ['made', 'made/file']) expect(statSync(join(workspace, path))).toMatchObject(OWNER)
    expect(text((await box.gate.read('made/file')).bytes)).toBe('x')
    // A hard link to a file of root, as another user could make it.
    writeFileSync(join(root, 'shadow'), 'secret', { mode: 0o600 })
    linkSync(join(root, 'shadow'), join(workspace, 'mine'))
    mkdirSync(join(workspace, 'roots'))
    expect(await reasonOf(box.gate.read('mine'))).toBe('not-theirs')
    expect(await reasonOf(box.gate.write('mine', 'x'))).toBe('not-theirs')
    expect(await reasonOf(box.gate.write('roots/x', 'x'))).toBe('not-theirs')
    expect(readFileSync(join(root, 'shadow'), 'utf8')).toBe('secret')
  })
})
