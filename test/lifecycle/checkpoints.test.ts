/** `pen checkpoint` and `pen rollback` while a sandbox lives, and of a layer that none uses. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { until } from '../until.ts'
import { lifecycleTest, type ProjectSandbox, type Said, START } from './project-sandbox.ts'

const NAME = ['--name', 'fix']
const stateOf = (here: ProjectSandbox): string => join(here.stateDir, 'names/fix')
const upper = (here: ProjectSandbox): string => join(stateOf(here), 'review/upper')
const read = (here: ProjectSandbox, name: string): string => readFileSync(join(upper(here), name), 'utf8')
/** Each file is written after the one before it, and has the same number. */
const WRITER =
  'i=0; while :; do i=$((i+1)); for f in x y z; do echo $i >$f.new; mv $f.new $f; done; sleep 0.005; done'
const commit = (message: string): string =>
  `git add -A file new 2>&-; git -c user.name=u -c user.email=u@example.com commit -qam ${message}`

lifecycleTest(
  'a checkpoint of a sandbox that writes is of one moment, and rollback brings back files, commits and the sandbox',
  async here => {
    const { box } = here
    box.host(
      'git init -q -b main; git config user.name u; git config user.email u@example.com; echo old > file; echo x > gone; mkdir dir; echo x > dir/a; git add .; git commit -qm one',
    )
    expect(await here.pen(...START, '--review', ...NAME)).toMatchObject({ code: 0 })
    const inside = (script: string): Promise<Said> => here.pen('exec', ...NAME, '--', '/bin/sh', '-c', script)
    await inside(`echo first >file; rm -r gone dir; mkdir dir; echo b >dir/b; chmod 0 dir; ${commit('two')}`)
    const writing = here.start(['exec', ...NAME, '--', '/bin/sh', '-c', WRITER])
    await until(() => existsSync(join(upper(here), 'z')))

    const made = await here.pen('checkpoint', ...NAME, 'first')
    expect([made.code, made.stderr, made.stdout]).toEqual([
      0,
      '',
      expect.stringMatching(/^checkpoint first \(\d+ names, \d+ KiB\): pen rollback --name fix first/),
    ])
    // The sandbox goes on.
    const seen = read(here, 'z')
    await until(() => read(here, 'z') !== seen)
    expect((await here.pen('checkpoint', ...NAME, 'first')).stderr).toContain('a checkpoint "first" already')
    expect((await here.pen('checkpoint', ...NAME, '../x')).stderr).toContain('cannot be the name')
    expect((await here.pen('rollback', ...NAME, 'furst')).stderr).toContain('did you mean first?')
    await inside(`echo second >file; echo new >new; chmod 700 dir; rm dir/b; ${commit('three')}`)

    const back = await here.pen('rollback', ...NAME, 'first')
    expect([back.code, back.stderr]).toEqual([0, expect.stringContaining('stopping the sandbox')])
    expect(back.stdout).toBe(
      'the layer is as it was at first; what was there before is checkpoint rollback-1\n',
    )
    await writing.ended
    const now = await inside(
      'cat file; ls; chmod 700 dir; cat dir/*; git log --format=%s; git status --short file; cat x y z',
    )
    const [x = 0, y = 0, z = 0] = now.stdout.trim().split('\n').slice(-3).map(Number)
    expect(now.stdout).toStartWith('first\ndir\nfile\nx\n')
    expect(now.stdout).toContain('\nb\ntwo\none\n')
    expect([y === x || y === x - 1, z === y || z === y - 1]).toEqual([true, true])

    // And forth again, while no sandbox runs.
    expect(await here.pen('stop', ...NAME)).toMatchObject({ code: 0 })
    expect(await here.pen('rollback', ...NAME, 'rollback-1')).toMatchObject({ code: 0, stderr: '' })
    expect(read(here, 'file')).toBe('second\n')
    const list = JSON.parse((await here.pen('checkpoints', '--json', ...NAME)).stdout)
    expect(list.checkpoints.map(({ name, why }: Record<string, string>) => `${name} ${why}`)).toEqual([
      'first asked',
      'rollback-1 rollback',
      'rollback-2 rollback',
    ])

    // An accept of a part keeps the layer, and a checkpoint of it. The project is not rolled back.
    const accepted = await here.pen('accept', '--yes', ...NAME, 'file')
    expect(accepted.stdout).toContain('the layer as it is now: checkpoint accept-3')
    expect(await here.pen('rollback', ...NAME, 'first')).toMatchObject({ code: 0 })
    expect([read(here, 'file'), readFileSync(join(box.project, 'file'), 'utf8')]).toEqual([
      'first\n',
      'second\n',
    ])
    const shown = (await here.pen('diff', '--stat', ...NAME)).stdout
    expect(shown).toMatch(
      /^deleted:\n {2}- dir\/a\n {2}- gone\nchanged:\n {2}m dir\/ .*\n {2}\+ dir\/b .*\n {2}~ file /,
    )

    expect(await here.pen('checkpoints', '--remove', 'first', ...NAME)).toMatchObject({ code: 0 })
    const dropped = await here.pen('discard', '--yes', ...NAME)
    expect([dropped.code, dropped.stdout]).toEqual([0, expect.stringContaining('and checkpoints: 4')])
    expect((await here.pen('checkpoints', ...NAME)).stderr).toContain('no checkpoints')
  },
)

lifecycleTest(
  'pen run is paused for a checkpoint, goes on when that is killed, and is not ended by a rollback',
  async here => {
    const command = ['run', '--review', '--backend', 'process', ...NAME, '--', '/bin/sh', '-c', WRITER]
    const running = here.start(command)
    await until(() => existsSync(join(upper(here), 'z')))
    const socket = join(stateOf(here), 'review.pause')
    await until(() => existsSync(socket))
    const client = connect(socket)
    await new Promise(resolve => client.once('data', resolve))
    const seen = read(here, 'x')
    await Bun.sleep(100)
    expect(read(here, 'x')).toBe(seen)
    client.destroy()
    await until(() => read(here, 'x') !== seen)

    expect(await here.pen('checkpoint', ...NAME)).toMatchObject({ code: 0 })
    const refused = await here.pen('rollback', ...NAME, '1')
    expect([refused.code, refused.stderr]).toEqual([
      125,
      expect.stringContaining('a sandbox of this project runs with this review layer'),
    ])
    running.child.kill('SIGTERM')
    await running.ended
    expect(existsSync(socket)).toBe(false)

    const last = read(here, 'z')
    expect(await here.pen('rollback', ...NAME, '1')).toMatchObject({ code: 0 })
    expect(Number(read(here, 'z'))).toBeLessThan(Number(last))
    // With an empty layer, its checkpoints are all that is left.
    expect(await here.pen('run', '--review', ...NAME, '--', 'sh', '-c', 'rm *')).toMatchObject({ code: 0 })
    expect(readdirSync(upper(here))).toEqual([])
    const kept = await here.pen('rm', '--yes', ...NAME)
    expect([kept.code, kept.stderr]).toEqual([125, expect.stringContaining('changes or checkpoints')])
    expect(await here.pen('rm', '--yes', '--discard', ...NAME)).toMatchObject({ code: 0 })
  },
)
