import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from '../until.ts'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import { brokerRecords, files, insides, startLoop } from './granted-run.ts'
import { isRoot, PEN } from './launcher.ts'
import { pen, stateDir } from './pen-command.ts'

/** The file broker is the same process of the host for every backend and user. */
const OF_THE_BROKER = { users: 'ordinary', once: 'the file broker is the same on every backend' } as const

/** A directory of the user beside the project. */
const notes = (box: Box) => {
  const dir = box.directory(join(box.home, 'notes'))
  return {
    dir,
    file: box.file(join(dir, 'todo.txt'), 'buy milk\n'),
    other: box.file(join(dir, 'diary.txt'), 'secret\n'),
  }
}

conformance(
  'P1 a granted file is served until it is revoked, its neighbour never, and each access is recorded',
  async box => {
    const { file, other } = notes(box)
    const run = startLoop(box)
    const before = await run.inside(files('cat', file))
    expect(before.code).toBe(1)
    expect(before.said).not.toContain('milk')
    expect(before.said).toContain(`pen grant ${file}`)
    expect((await pen(box, 'grant', file)).code).toBe(0)
    expect(await run.inside(files('cat', file))).toEqual({ said: 'buy milk\n', code: 0 })
    expect((await run.inside(files('cat', other))).said).not.toContain('secret')
    expect((await run.inside(`${files('get', file)} && cat todo.txt`)).said).toContain('buy milk')
    expect((await run.inside(files('ls'))).said).toBe(`ro  ${file}\n`)
    expect((await pen(box, 'revoke', file)).code).toBe(0)
    expect((await run.inside(files('cat', file))).code).toBe(1)
    const { printed } = await run.end()
    expect(printed).toContain(`refused: read ${file}`)
    expect(brokerRecords(box).map(({ kind, reason, path }) => [kind, reason, path])).toEqual([
      ['broker-denied', 'not-granted', file],
      ['grants-changed', undefined, undefined],
      ['broker-allowed', undefined, file],
      ['broker-ended', 'done', file],
      ['broker-denied', 'not-granted', other],
      ['broker-allowed', undefined, file],
      ['broker-ended', 'done', file],
      ['grants-changed', undefined, undefined],
      ['broker-denied', 'not-granted', file],
    ])
  },
)

conformance(
  'P22 a grant around the file of a secret does not show that file',
  async box => {
    const { dir, file, other } = notes(box)
    symlinkSync(other, join(box.home, 'token'))
    expect(
      (await pen(box, 'secret', 'add', 'S', '--to', 'example.com:443', '--file', join(box.home, 'token')))
        .code,
    ).toBe(0)
    expect((await pen(box, 'grant', dir)).code).toBe(0)
    const run = startLoop(box)
    expect(await run.inside(files('cat', file))).toEqual({ said: 'buy milk\n', code: 0 })
    const shown = await run.inside(files('cat', other))
    expect([shown.code, shown.said.includes('secret')]).toEqual([1, false])
    expect((await run.inside(files('ls', dir))).said).not.toContain('diary')
    await run.end()
    expect(brokerRecords(box).map(({ kind, reason, path }) => [kind, reason, path])).toContainEqual([
      'broker-denied',
      'denied-by-rule',
      other,
    ])
  },
  OF_THE_BROKER,
)

conformance('P1 no link, no ".." and no other name leads out of a granted directory', async box => {
  const { dir } = notes(box)
  const secret = box.file(join(box.home, 'secret'), 'canary\n')
  symlinkSync(secret, join(dir, 'link'))
  symlinkSync(box.home, join(dir, 'up'))
  expect((await pen(box, 'grant', dir)).code).toBe(0)
  const run = startLoop(box)
  for (const [path, reason] of [
    ['link', 'link'],
    ['up/secret', 'link'],
    ['up/.pen/cache/nothing', 'link'],
    ['../secret', 'not-granted'],
  ] as const)
    expect([path, (await run.inside(files('cat', `${dir}/${path}`))).said]).toEqual([
      path,
      expect.stringContaining(`(${reason})`),
    ])
  expect((await run.inside(files('ls', dir))).said).toBe('diary.txt\nlink@\ntodo.txt\nup@\n')
  expect((await run.inside(files('cat', join(dir, 'todo.txt')))).said).toBe('buy milk\n')
  await run.end()
  expect(
    brokerRecords(box)
      .filter(({ kind }) => kind === 'broker-denied')
      .map(({ reason }) => reason),
  ).toEqual(['link', 'link', 'link', 'not-granted'])
})

conformance(
  'P3 a granted file is copied only where the sandbox may write; a refusal names the place',
  async box => {
    const { file } = notes(box)
    box.host('echo mine > .npmrc')
    expect((await pen(box, 'grant', file)).code).toBe(0)
    const run = startLoop(box)
    const refused = await run.inside(files('get', file, '.npmrc'))
    expect(refused.code).toBe(125)
    expect(refused.said).toContain('could not write the copy')
    expect(refused.said).toContain(`${box.project}/.npmrc`)
    expect((await run.inside(files('get', file, 'copy'))).code).toBe(0)
    await run.end()
    expect(readFileSync(join(box.project, '.npmrc'), 'utf8')).toBe('mine\n')
    expect(readFileSync(join(box.project, 'copy'), 'utf8')).toBe('buy milk\n')
    expect(readdirSync(box.project).filter(name => name.endsWith('.tmp'))).toEqual([])
  },
  OF_THE_BROKER,
)

conformance(
  'P1 a grant for one project does not serve another project’s sandbox',
  async box => {
    const { file } = notes(box)
    expect((await pen(box, 'grant', file)).code).toBe(0)
    const other = box.directory(join(box.home, 'other'))
    const there = await box.run(['/bin/sh', '-c', `${files('ls')}; ${files('cat', file)}; ls /run/pen`], {
      cwd: other,
    })
    expect(there.stdout).not.toContain('milk')
    expect(there.stdout).not.toContain(file)
    const here = await box.run(['/bin/sh', '-c', files('cat', file)])
    expect(here.stdout).toBe('buy milk\n')
  },
  OF_THE_BROKER,
)

conformance(
  'P2 content is put only where writing is granted, complete, as the user, never executable',
  async box => {
    const { dir, file } = notes(box)
    expect((await pen(box, 'grant', dir)).code).toBe(0)
    const run = startLoop(box)
    const put = `echo new | ${files('put', '-', file)}`
    expect((await run.inside(put)).said).toContain(`pen grant ${file} --rw`)
    expect(readFileSync(file, 'utf8')).toBe('buy milk\n')
    expect((await pen(box, 'grant', dir, '--rw')).code).toBe(0)
    expect((await run.inside(put)).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe('new\n')
    const made = join(dir, 'made.sh')
    expect((await run.inside(`printf '#!/bin/sh\\n' | ${files('put', '--exec', '-', made)}`)).code).toBe(0)
    const { uid, gid } = box.launcher.who
    for (const path of [file, made]) expect(lstatSync(path)).toMatchObject({ uid, gid, mode: 0o100644 })
    for (const path of [join(dir, 'no/dir'), dir, join(box.home, 'beside'), join(dir, '.git/config')])
      expect((await run.inside(`echo x | ${files('put', '-', path)}`)).code).toBe(1)
    await run.end()
    expect(readdirSync(dir).sort()).toEqual(['diary.txt', 'made.sh', 'todo.txt'])
    expect(readdirSync(box.home)).not.toContain('beside')
  },
)

conformance(
  'P3 a denied path cannot be granted, nor served by a grant above it',
  async box => {
    const { dir, file, other } = notes(box)
    expect((await pen(box, 'grant', dir, '--rw')).code).toBe(0)
    const run = startLoop(box, '--deny', other)
    expect((await run.inside(files('cat', other))).said).toContain('denied-by-rule')
    expect((await run.inside(`echo x | ${files('put', '-', other)}`)).code).toBe(1)
    expect((await run.inside(files('ls', dir))).said).toBe('todo.txt\n')
    expect((await run.inside(files('cat', file))).said).toBe('buy milk\n')
    await run.end()
    expect(readFileSync(other, 'utf8')).toBe('secret\n')
    box.file(
      join(stateDir(box), 'config.json'),
      JSON.stringify({ version: 1, files: { deny: [other] } }),
      0o600,
    )
    const refused = await pen(box, 'grant', other)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('files.deny')
    expect((await pen(box, 'grant', file)).code).toBe(0)
  },
  OF_THE_BROKER,
)

conformance(
  'P16 pen’s own directory is granted for reading only',
  async box => {
    const program = dirname(PEN)
    const refused = await pen(box, 'grant', program, '--rw')
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('pen itself is installed there'),
    ])
    expect((await pen(box, 'grants')).stderr).toContain('nothing is granted')
    expect((await pen(box, 'grant', program)).code).toBe(0)
    expect((await pen(box, 'grants')).stderr).not.toContain('nothing is granted')
  },
  OF_THE_BROKER,
)

conformance('P16 nothing inside a sandbox or in the project makes a grant', async box => {
  const { file } = notes(box)
  mkdirSync(join(box.project, '.pen'))
  const forged = JSON.stringify({
    version: 1,
    grants: [{ path: file, kind: 'file', write: true, execute: true, until: null, root: '1:1' }],
  })
  for (const name of ['file-grants.json', 'grants.json', '.pen/file-grants.json']) box.file(name, forged)
  const run = startLoop(box)
  expect((await run.inside(`pen grant ${file}`)).said).toContain('INSIDE_SANDBOX')
  await run.inside(
    `env -u AGENT_IN_SANDBOX pen grant ${file}; env -u AGENT_IN_SANDBOX HOME=${box.home} pen grant ${file}`,
  )
  await run.inside(`printf %s '${forged}' > /run/pen/file-grants.json; mkdir -p ${stateDir(box)}`)
  expect((await run.inside(files('cat', file))).said).not.toContain('milk')
  expect((await run.inside('touch /run/pen/x')).code).not.toBe(0)
  expect(readdirSync(stateDir(box))).not.toContain('file-grants.json')
  expect((await pen(box, 'grants')).stderr).toContain('nothing is granted')
  expect((await pen(box, 'grant', file)).code).toBe(0)
  expect((await run.inside(files('cat', file))).said).toBe('buy milk\n')
  await run.end()
})

conformance(
  'P18 a path that a sandbox sends is one record, and forges no line of the audit',
  async box => {
    const run = startLoop(box)
    const hostile = [
      '/a\nforged',
      '/a\u001b[2J',
      '/a\u202eb',
      `/${'x'.repeat(3000)}`,
      '/a";"kind":"broker-allowed',
    ]
    for (const path of hostile)
      expect((await run.inside(files('cat', path).replaceAll('\n', "'\"$(printf '\\nx')\"'"))).code).toBe(1)
    await run.end()
    const records = brokerRecords(box)
    expect(records.map(({ kind }) => kind)).toEqual(hostile.map(() => 'broker-denied'))
    const dir = join(stateDir(box), 'audit')
    for (const name of readdirSync(dir))
      expect(readFileSync(join(dir, name), 'utf8')).toMatch(/^[\x20-\x7e\n]*$/)
  },
  OF_THE_BROKER,
)

conformance(
  'P17 when the supervisor is killed during a write, the old file stays, with nothing beside it',
  async box => {
    const { dir, file } = notes(box)
    expect((await pen(box, 'grant', dir, '--rw')).code).toBe(0)
    const run = startLoop(box)
    await run.inside(`(head -c 3000000 /dev/zero; sleep 30) | ${files('put', '-', file)} & :`)
    await until(() => brokerRecords(box).some(({ op }) => op === 'write'))
    await until(() => /^\d+$/m.test(draftsOf(run.child.pid ?? 0, dir)))
    run.child.kill('SIGKILL')
    await run.end()
    expect(readFileSync(file, 'utf8')).toBe('buy milk\n')
    expect(readdirSync(dir).sort()).toEqual(['diary.txt', 'todo.txt'])
    // The next run works, and has removed what the killed one left.
    const next = await box.run(['/bin/sh', '-c', `echo done | ${files('put', '-', file)}`])
    expect([next.code, next.stderr]).toEqual([0, next.stderr])
    expect(readFileSync(file, 'utf8')).toBe('done\n')
    expect(insides(box)).toEqual([])
  },
)

/** Open unnamed files of a process in a directory. */
const draftsOf = (pid: number, dir: string): string =>
  spawnSync('sh', ['-c', `ls -l /proc/${pid}/fd | grep -c '${dir}/#'`], { encoding: 'utf8' }).stdout.replace(
    /^0$/m,
    '',
  )

/** Blocks until the test continues it. */
const WAIT = 'until [ -e /tmp/go ]; do sleep 0.01; done'

conformance(
  'P2 a write that was revoked or expired does not happen; a read ends in the middle',
  async box => {
    const { dir, file } = notes(box)
    const large = box.file(join(dir, 'large'), 'x'.repeat(3_000_000))
    expect((await pen(box, 'grant', dir, '--rw')).code).toBe(0)
    const run = startLoop(box)
    await run.inside(`(echo new; ${WAIT}) | ${files('put', '-', file)} 2>/tmp/put & :`)
    await run.inside(
      `(${files('cat', large)} 2>/tmp/cat | (head -c 1000; ${WAIT}; cat) | wc -c > /tmp/count) & :`,
    )
    await until(() => brokerRecords(box).filter(({ kind }) => kind === 'broker-allowed').length === 2)
    expect((await pen(box, 'revoke', '--all')).code).toBe(0)
    await until(() => brokerRecords(box).filter(({ reason }) => reason === 'revoked').length === 2)
    await run.inside('touch /tmp/go')
    await run.within1s('cat /tmp/put', ({ said }) => said.includes('revoked'))
    await run.within1s('cat /tmp/count', ({ said }) => Number(said) > 0 && Number(said) < 3_000_000)
    expect(readFileSync(file, 'utf8')).toBe('buy milk\n')
    expect((await pen(box, 'grant', file, '--for', '300ms')).code).toBe(0)
    await run.within1s(
      files('cat', file),
      ({ said }) => said.includes('expired') || said.includes('not-granted'),
    )
    await run.end()
  },
  OF_THE_BROKER,
)

conformance(
  'P21 a stranger can neither see the broker’s socket nor connect to it; its sandbox can',
  async box => {
    const run = startLoop(box)
    await run.inside(files('ls'))
    // A virtual machine has a directory for QEMU too.
    const isSocket = (dir: string) =>
      lstatSync(join(dir, 'broker'), { throwIfNoEntry: false })?.isSocket() === true
    const [inside = ''] = insides(box).filter(isSocket)
    expect(inside).not.toBe('')
    const connect = `import os, socket
os.chdir('${inside}')
s = socket.socket(socket.AF_UNIX); s.connect('broker'); print('connected')`
    const as = (uid: number) =>
      spawnSync('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'python3', '-c', connect], {
        encoding: 'utf8',
        env: { PATH: '/usr/bin:/bin' },
      })
    const stranger = as(64_399)
    expect(stranger.stdout).toBe('')
    expect(stranger.stderr).toContain('PermissionError')
    expect(as(box.launcher.who.uid).stdout).toBe('connected\n')
    await run.end()
  },
  { only: () => isRoot },
)
