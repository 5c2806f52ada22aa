/** Several sandboxes of one project at once: what each has of its own, and what they share. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { auditRecords } from '../audit-records.ts'
import { until } from '../until.ts'
import { freePort } from './forwarded.ts'
import { lifecycleTest, type ProjectSandbox, type Said } from './project-sandbox.ts'

const stateOf = (here: ProjectSandbox, name: string): string => join(here.stateDir, 'names', name)
const kinds = (here: ProjectSandbox, name: string): unknown[] =>
  auditRecords(stateOf(here, name)).map(({ kind }) => kind)
const inside = (here: ProjectSandbox, name: string, script: string): Promise<Said> =>
  here.pen('exec', '--name', name, '--', '/bin/sh', '-c', script)

lifecycleTest(
  'P10 two named sandboxes have a home, ports, grants, git and audit each, and the rules of their project',
  async here => {
    const { box } = here
    const host = await freePort()
    here.configure(
      JSON.stringify({ version: 1, profile: 'coding', backend: 'process', ports: [{ guest: 3000, host }] }),
    )
    const names = ['one', 'two']
    const start = (...name: string[]) => here.pen('start', '--detach', '--backend', 'process', ...name)
    const started = await Promise.all([start(), ...names.map(name => start('--name', name))])
    expect(started.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual(
      Array(3).fill([0, '']),
    )

    expect((await inside(here, 'one', 'echo mine >~/file; echo work >shared; cat ~/file')).stdout).toBe(
      'mine\n',
    )
    const other = await inside(here, 'two', 'cat shared; cat ~/file')
    expect([other.stdout, other.code]).toEqual(['work\n', 1])
    expect(kinds(here, 'one').filter(kind => kind === 'exec-start')).toHaveLength(1)

    const note = box.file(join(box.home, 'note.txt'), 'granted')
    expect(await here.pen('grant', '--name', 'one', note)).toMatchObject({ code: 0 })
    const read = (name: string) =>
      here.pen('exec', '--name', name, '--', '/run/pen/pen', 'files', 'cat', note)
    expect((await read('one')).stdout).toBe('granted')
    expect((await read('two')).stderr).toContain(`pen grant --name two ${note}`)

    const statuses = await Promise.all(
      [[], ...names.map(name => ['--name', name])].map(async flags =>
        JSON.parse((await here.pen('status', '--json', ...flags)).stdout),
      ),
    )
    const ports = statuses.map(({ forwards }) => forwards[0].host)
    expect([ports[0], new Set(ports).size]).toEqual([host, 3])
    expect(statuses.map(({ name }) => name)).toEqual([null, 'one', 'two'])

    // `pen deny` returns when every sandbox of the project has the rule.
    expect(await here.pen('deny', 'refused.example.com')).toMatchObject({ code: 0 })
    for (const name of names) expect(kinds(here, name)).toContain('policy-changed')
    expect(await here.pen('deny', 'later.example.com', '--session')).toMatchObject({ code: 0 })
    expect(readdirSync(join(here.stateDir, 'grants'))).toHaveLength(3)

    const { sandboxes } = JSON.parse((await here.pen('ls', '--json')).stdout)
    expect(sandboxes.map(({ name, state }: Record<string, unknown>) => [name, state])).toEqual([
      [null, 'running'],
      ['one', 'running'],
      ['two', 'running'],
    ])
    const refused = await here.pen('rm', '--yes')
    expect([refused.code, refused.stderr]).toEqual([
      125,
      expect.stringContaining('named sandboxes, which use its config: one, two'),
    ])
    expect(await here.pen('stop', '--name', 'one')).toMatchObject({ code: 0 })
    expect(await here.pen('gc')).toMatchObject({ code: 0 })
    expect((await here.pen('status', '--name', 'two')).code).toBe(0)
    // The grant of a run in another sandbox stays.
    expect(readdirSync(join(here.stateDir, 'grants'))).toHaveLength(2)
    for (const name of names) expect(await here.pen('rm', '--yes', '--name', name)).toMatchObject({ code: 0 })
    expect(existsSync(join(here.stateDir, 'names'))).toBe(false)
    expect((await here.pen('status')).code).toBe(0)
    expect(await here.pen('rm', '--yes')).toMatchObject({ code: 0 })
    expect(readFileSync(join(box.project, 'shared'), 'utf8')).toBe('work\n')
  },
)

lifecycleTest(
  'a name that pen does not know makes no sandbox, except where the verb makes one',
  async here => {
    const made = await here.pen('run', '--name', 'fix-a', '--', 'true')
    expect(made).toMatchObject({ code: 0 })
    for (const verb of ['exec', 'logs', 'stop', 'rm', 'restart', 'grants']) {
      const said = await here.pen(verb, '--name', 'fix-b', ...(verb === 'exec' ? ['--', 'true'] : []))
      expect([said.code, said.stderr]).toEqual([2, expect.stringContaining('its names are fix-a')])
      expect(said.stderr).toContain('fix: --name fix-a, or make it: pen start --name fix-b')
    }
    expect(readdirSync(join(here.stateDir, 'names'))).toEqual(['fix-a'])
    const odd = await here.pen('run', '--name', '../fix-a', '--', 'true')
    expect([odd.code, odd.stderr]).toEqual([2, expect.stringContaining('cannot be the name of a sandbox')])
    const both = await here.pen('stop', '--name', 'fix-a', 'other')
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('both choose a sandbox')])
    expect((await here.pen('logs', '--name', 'fix-a', '--all')).stdout).toContain('exit 0')
  },
)

lifecycleTest(
  'P3 what a killed sandbox left at protected places is moved at the start of any other',
  async here => {
    const script = 'echo up; until [ -e go ]; do sleep 0.02; done; echo x >.envrc; sleep 60'
    const killed = here.start(['run', '--name', 'a', '--', 'sh', '-c', script])
    await killed.printed('up')
    const records = join(here.stateDir, 'watching')
    const record = readFileSync(join(records, readdirSync(records)[0] ?? ''), 'utf8')
    const pid = Number(/"pid":(\d+)/.exec(record)?.[1])
    // A stopped pen does not move it at once.
    process.kill(pid, 'SIGSTOP')
    here.box.file('go', '')
    const planted = join(here.box.project, '.envrc')
    await until(() => existsSync(planted))
    process.kill(pid, 'SIGKILL')
    await killed.ended
    expect(existsSync(planted)).toBe(true)
    expect(await here.pen('run', '--name', 'b', '--', 'true')).toMatchObject({ code: 0 })
    expect([existsSync(planted), readdirSync(records)]).toEqual([false, []])
    expect(kinds(here, 'b')).toContain('quarantine')
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'pen run --parallel shows each result, fails when one fails, and Ctrl-C ends all',
  async here => {
    const each = 'echo x >>~/seen; wc -l <~/seen'
    const good = await here.pen('run', '--json', '--parallel', '3', '--', 'sh', '-c', each)
    const { results } = JSON.parse(good.stdout)
    expect(good.code).toBe(0)
    expect(
      results.map(({ name, exitCode, lines }: Record<string, unknown>) => [
        name,
        exitCode,
        (lines as string[]).at(-1),
      ]),
    ).toEqual(['run-1', 'run-2', 'run-3'].map(name => [name, 0, '1']))

    const bad = await here.pen(
      'run',
      '--parallel',
      '2',
      '--name',
      'try',
      '--',
      'sh',
      '-c',
      'mkdir lock && seq 30',
    )
    expect([bad.code, bad.stdout]).toEqual([1, expect.stringContaining('1 of 2 succeeded')])
    expect(bad.stdout).toMatch(/try-[12]: exit 0 after .*\n( {2}2\d\n){9} {2}30\n/)

    const long = here.start([
      'run',
      '--parallel',
      '2',
      '--',
      'sh',
      '-c',
      'echo x >"up-$$-$(cat /proc/sys/kernel/random/uuid)"; sleep 60',
    ])
    await until(() => readdirSync(here.box.project).filter(name => name.startsWith('up-')).length === 2)
    long.child.kill('SIGINT')
    const said = await long.ended
    expect([said.code, said.stdout]).toEqual([130, expect.stringContaining('0 of 2 succeeded')])
  },
)

lifecycleTest(
  'pen compare shows files and commits that differ between two layers, also where the sandbox locked them',
  async here => {
    const { box } = here
    box.host(
      'git init -q -b main; git config user.name u; git config user.email u@example.com; echo old > both; echo x > gone; git add .; git commit -qm one',
    )
    const script =
      'read id </proc/sys/kernel/random/uuid; echo "$id" >both; echo alike >alike; echo "$id" >"only-$id"; rm gone; mkdir -p dir; echo "$id" >dir/locked; chmod 0 dir/locked dir; mkdir node_modules; for i in 0 1 2 3 4 5 6 7 8 9 a; do echo "$id" >node_modules/$i; done'
    const ran = await here.pen(
      'run',
      '--parallel',
      '2',
      '--name',
      'fix',
      '--review',
      '--',
      'sh',
      '-c',
      script,
    )
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('pen compare fix-1 fix-2')])
    const commit = 'git config user.name u; git config user.email u@example.com; git commit -qam two'
    expect(await here.pen('run', '--name', 'fix-2', '--review', '--', 'sh', '-c', commit)).toMatchObject({
      code: 0,
    })

    const said = await here.pen('compare', 'fix-1', 'fix-2')
    expect(said.code).toBe(1)
    const uuid = '[0-9a-f-]{36}'
    for (const pattern of [
      `only in fix-1:\n  \\+ only-${uuid}  \\(37 B\\)\nonly in fix-2:\n  \\+ only-${uuid}  \\(37 B\\)\n`,
      'the same in both:\n  \\+ alike  \\(6 B\\)\n  \\+ dir/\n  - gone\n  \\+ node_modules/\ndifferent:\n  both  \\(fix-1: 4 B → 37 B; fix-2: 4 B → 37 B\\)\n  dir/locked .*\n  node_modules/  11 different\n',
      `--- fix-1/both\n\\+\\+\\+ fix-2/both\n@@ -1,1 \\+1,1 @@\n-${uuid}\n\\+${uuid}\n`,
      `--- fix-1/dir/locked\n\\+\\+\\+ fix-2/dir/locked\n@@ -1,1 \\+1,1 @@\n-${uuid}\n`,
      'commits only in fix-2:\n  main: not on the host yet',
      '\n13 different, 1 only in fix-1, 1 only in fix-2, 4 the same\n$',
    ])
      expect(said.stdout).toMatch(new RegExp(pattern))

    const data = JSON.parse((await here.pen('compare', 'fix-2', 'fix-1', '--json')).stdout)
    expect(data.different.slice(0, 2).map(([one]: { path: string }[]) => one?.path)).toEqual([
      'both',
      'dir/locked',
    ])
    expect(data.commits.onlySecond).toEqual([])

    const none = await here.pen('compare', 'fix-1')
    expect([none.code, none.stderr]).toEqual([
      125,
      expect.stringContaining('the sandbox without a name has no review layer'),
    ])
    const unknown = await here.pen('compare', 'fix-1', 'fix-3')
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('its names are fix-1, fix-2')])
    const alike = 'echo alike >alike; rm gone'
    for (const name of [[], ['--name', 'again']])
      expect(await here.pen('run', '--review', ...name, '--', 'sh', '-c', alike)).toMatchObject({ code: 0 })
    expect(await here.pen('compare', 'again')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('0 different'),
    })
  },
)
