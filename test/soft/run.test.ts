/**
 * `pen run --isolation soft`: what it asks for, prints and enforces. What no kernel enforces is accepted by
 * name, and not claimed here.
 */
import { expect } from 'bun:test'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import { lives, within } from '../until.ts'
import { accepting, forEverybody, GAPS, LEAVING, SOFT } from './soft-box.ts'

const SHELL = { tools: { shell: true } }

forEverybody('a soft sandbox stops while one of its gaps is not accepted, and names it', async box => {
  for (const gap of GAPS) {
    const rest = GAPS.filter(name => name !== gap)
    const ran = await box.pen('run', '--isolation', 'soft', ...accepting(rest), '--', 'touch', 'ran')
    expect(ran.code).toBe(125)
    expect(ran.stderr).toContain(`--accept-gap ${gap}`)
  }
  expect(box.has('ran')).toBe(false)
  expect((await box.run('touch', 'ran')).code).toBe(0)
  expect(box.has('ran')).toBe(true)
})

forEverybody('the plan names every gap, and mounts nothing', async box => {
  const { stdout, code } = await box.pen('plan', '--backend', 'soft', '--json', '--', 'true')
  expect(code).toBe(0)
  const { plan } = JSON.parse(stdout)
  expect(plan.gaps.map((gap: { name: string }) => gap.name)).toEqual(GAPS)
  expect([plan.isolation, plan.steps]).toEqual(['soft', []])
  const env = Object.fromEntries(
    plan.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
  )
  expect(env).toMatchObject({ SOFT_SANDBOX: 'true', AGENT_IN_SANDBOX: '1' })
})

forEverybody(
  'it is loud: on stderr without a terminal, in the environment, and in every record',
  async box => {
    const ran = await box.run('env')
    expect(ran.stderr).toContain('SOFT_SANDBOX=true: no kernel confines this run')
    expect(ran.stderr).toContain(`accepted gaps: ${GAPS.join(', ')}`)
    expect(ran.stdout).toContain('SOFT_SANDBOX=true\n')
    expect(box.audit().map(({ kind, soft }) => [kind, soft])).toEqual([
      ['run-start', true],
      ['tool-allowed', true],
      ['tool-ended', true],
      ['run-end', true],
    ])
    expect((await box.pen('logs', '--all')).stdout).toContain('SOFT_SANDBOX')
  },
)

forEverybody(
  'nothing of the host’s environment crosses, and home and scratch are the run’s own',
  async box => {
    const { stdout } = await box.run('env')
    const env = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map(line => line.split(/=(.*)/s).slice(0, 2)),
    )
    expect(env['API_KEY']).toBeUndefined()
    expect(env['HOME']).not.toBe(box.home)
    expect(env['HOME']).toMatch(/\/pen-soft-[^/]+\/home$/)
    expect(env['TMPDIR']).toMatch(/\/pen-soft-[^/]+\/tmp$/)
    // Other backends pass the user's registry by a file of pen. Here that path is the host's.
    writeFileSync(join(box.home, '.npmrc'), 'registry=https://registry.example.com/\n')
    const printed = await box.pen(...SOFT.slice(0, -1), '--group', 'npm', '--', 'env')
    expect(printed.stdout).toContain('AGENT_IN_SANDBOX=1')
    expect(printed.stdout).not.toContain('/etc/npmrc')
    box.config(SHELL)
    const made = await box.run(
      'sh',
      '-c',
      'echo secret > ~/left; echo x > $TMPDIR/left; stat -c %a ~ $TMPDIR; pwd; echo $HOME',
    )
    const [mode, other, cwd, home = ''] = made.stdout.trim().split('\n')
    expect([mode, other, cwd]).toEqual(['700', '700', box.project])
    expect(() => statSync(home)).toThrow('ENOENT')
  },
)

forEverybody('a command of root never runs as root, and its files belong to the owner', async box => {
  box.config(SHELL)
  const { stdout } = await box.run('sh', '-c', 'id -u; id -G; grep NoNewPrivs /proc/self/status; touch made')
  expect(stdout.split('\n').slice(0, 1)).toEqual([String(box.owner.uid)])
  expect(stdout).toContain('NoNewPrivs:\t1')
  expect(statSync(join(box.project, 'made')).uid).toBe(box.owner.uid)
})

forEverybody(
  'the user’s own command runs, a shell only when allowed, and a list holds for both',
  async box => {
    const shell = await box.run('sh', '-c', 'touch ran')
    expect([shell.code, box.has('ran')]).toEqual([126, false])
    expect(shell.stderr).toContain('pen config set tools.shell true')
    expect((await box.pen(...SOFT)).code).toBe(126)
    const script = box.file('script', '#!/bin/sh\ntouch ran\n')
    await Bun.$`chmod 755 ${script}`.quiet()
    expect((await box.run('./script')).code).toBe(126)
    expect(box.of('tool-denied')).toHaveLength(3)
    expect(box.of('tool-denied')[0]).toMatchObject({
      reason: 'shell-off',
      command: ['sh', '-c', 'touch ran'],
      soft: true,
    })
    box.config(SHELL)
    expect((await box.run('./script')).code).toBe(0)
    expect(box.has('ran')).toBe(true)
    box.config({ tools: { allow: ['true'] } })
    expect((await box.run('true')).code).toBe(0)
    expect((await box.run('touch', 'other')).code).toBe(126)
    expect(box.has('other')).toBe(false)
    box.config({})
    box.file('agent-permissions.json', '{"version":1,"tools":{"shell":true,"allow":["sh"]}}')
    expect((await box.run('sh', '-c', 'touch other')).code).toBe(126)
  },
)

forEverybody('exit codes are right, and input and both outputs pass', async box => {
  box.config(SHELL)
  expect((await box.run('sh', '-c', 'exit 7')).code).toBe(7)
  expect((await box.run('sh', '-c', 'kill -TERM $$')).code).toBe(143)
  expect((await box.run('no-such-program')).code).toBe(127)
  const { code, stdout, stderr } = await box.start([...SOFT, 'sh', '-c', 'cat; echo err >&2'], {
    stdin: 'fed',
  }).ended
  expect([code, stdout]).toEqual([0, 'fed'])
  expect(stderr).toEndWith('err\n')
})

forEverybody('everything ends with the timeout, and with the command', async box => {
  box.config(SHELL)
  const pids = () => ['own', 'forked'].map(name => readFileSync(join(box.project, name), 'utf8'))
  const late = await box.pen(
    'run',
    '--isolation',
    'soft',
    '--wall',
    '1500ms',
    ...accepting(GAPS),
    '--',
    'sh',
    '-c',
    `${LEAVING} trap "" TERM; sleep 300`,
  )
  expect(late.code).toBe(124)
  expect(pids().filter(lives)).toEqual([])
  await Bun.$`rm ${join(box.project, 'own')} ${join(box.project, 'forked')}`.quiet()
  expect((await box.run('sh', '-c', `${LEAVING} exit 5`)).code).toBe(5)
  expect(pids().filter(lives)).toEqual([])
})

forEverybody(
  'when pen is killed everything that it started ends, and the next run removes its directories',
  async box => {
    box.config(SHELL)
    const run = box.start([...SOFT, 'sh', '-c', `echo $HOME > home; ${LEAVING} trap "" TERM; sleep 300`])
    expect(await within(15_000, () => run.said.stdout.includes('up'))).toBe(true)
    run.child.kill('SIGKILL')
    await run.ended
    const pids = ['own', 'forked'].map(name => readFileSync(join(box.project, name), 'utf8'))
    expect(await within(15_000, () => pids.every(pid => !lives(pid)))).toBe(true)
    const home = readFileSync(join(box.project, 'home'), 'utf8').trim()
    expect(readdirSync(home)).toEqual([])
    await box.run('true')
    expect(() => statSync(home)).toThrow('ENOENT')
  },
)

forEverybody('a run that cannot be recorded does not begin', async box => {
  await box.run('true')
  await Bun.$`rm -r ${join(box.state, 'audit')}`.quiet()
  await Bun.write(join(box.state, 'audit'), '')
  const ran = await box.run('touch', 'ran')
  expect([ran.code, box.has('ran')]).toEqual([125, false])
})

forEverybody('a command that stops, kills or impersonates its supervisor is still ended', async box => {
  box.config(SHELL)
  const pids = () => ['pid', 'own'].map(name => readFileSync(join(box.project, name), 'utf8'))
  const script = (line: string) =>
    `echo $$ > pid; rm -f own; setsid sh -c 'echo $$ > own; sleep 300' & while [ ! -s own ]; do :; done; trap "" TERM; ${line}; sleep 300`
  const isEnded = async (line: string) => {
    const flags = ['--wall', '1s', ...accepting(GAPS)]
    const watch = new Stopwatch()
    await box.pen('run', '--isolation', 'soft', ...flags, '--', 'sh', '-c', script(line))
    expect(watch.ms).toBeLessThan(12_000)
    expect(await within(15_000, () => !pids().some(lives))).toBe(true)
  }
  await isEnded('kill -STOP $PPID')
  await isEnded('kill -KILL $PPID')
  const lie = '{"kind":"ended","code":0,"signal":null,"survivors":0}'
  await isEnded(`echo '${lie}' > /proc/$PPID/fd/4; echo '{"kind":"started","pid":1}' > /proc/$PPID/fd/4`)
})

forEverybody('a project cannot choose it, not even one that may add to the policy', async box => {
  box.file('agent-permissions.json', JSON.stringify({ version: 1, isolation: 'soft', acceptGaps: GAPS }))
  const added = await box.pen('run', '--allow-user-expansion', '--', 'touch', 'ran')
  expect([added.code, box.has('ran')]).toEqual([125, false])
  expect(added.stderr).toContain('only you can choose a sandbox without kernel isolation')
  const { stdout } = await box.pen('plan', '--json', '--', 'true')
  expect(JSON.parse(stdout).plan.isolation).not.toBe('soft')
  expect((await box.run('touch', 'ran')).code).toBe(0)
})

forEverybody('git has the user’s name, and no other setting of theirs', async box => {
  box.file('../home/.gitconfig', '[user]\n  name = Ada\n[alias]\n  secret = !cat\n')
  expect((await box.run('git', 'config', '--get-regexp', 'user|alias')).stdout).toBe('user.name Ada\n')
})
