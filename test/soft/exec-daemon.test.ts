/**
 * `pen start --isolation soft`: every command and file goes through the gate, and everything ends with the
 * sandbox.
 */
import { expect } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { PEN } from '../conformance/launcher.ts'
import { lives, within } from '../until.ts'
import { accepting, forEverybody, GAPS, KEEP_SOFT, LEAVING, type SoftBox, withStarted } from './soft-box.ts'

const SHELL = { tools: { shell: true, allow: ['sh', 'cat'] } }

const sh = (box: SoftBox, script: string, ...flags: string[]) =>
  box.pen('exec', ...flags, '--', 'sh', '-c', script)

const pidsIn = (box: SoftBox, ...names: string[]): string[] =>
  names.map(name => readFileSync(join(box.project, name), 'utf8'))

forEverybody('it stays when it is named and every gap is accepted, and says what it is', async box => {
  const [gap = '', ...rest] = GAPS
  const open = await box.pen('start', '--detach', '--isolation', 'soft', ...accepting(rest))
  expect([open.code, open.stderr.includes(`--accept-gap ${gap}`)]).toEqual([125, true])
  expect((await box.pen('status')).code).toBe(1)
  box.config({ tools: { allow: ['env'] } })
  await withStarted(box, async () => {
    const { stdout } = await box.pen('status')
    expect(stdout).toContain('SOFT_SANDBOX=true: no kernel confines this run')
    expect(JSON.parse((await box.pen('status', '--json')).stdout)).toMatchObject({
      soft: true,
      isolation: 'soft',
      gaps: GAPS.map(name => ({ name })),
    })
    const said = await box.pen('exec', '--env', 'SOFT_SANDBOX=no', '--', 'env')
    expect(said.stdout).toContain('SOFT_SANDBOX=true\n')
    expect(said.stdout).not.toMatch(/API_KEY|SOFT_SANDBOX=no/)
  })
  expect(box.audit().filter(({ soft }) => soft !== true)).toEqual([])
  expect(box.audit().map(({ kind }) => kind)).toEqual([
    'run-start',
    'exec-start',
    'tool-allowed',
    'exec-end',
    'run-end',
  ])
})

forEverybody('a command runs if the user listed it, a shell if the user allowed that too', async box => {
  await withStarted(box, async () => {
    for (const argv of [['touch', 'ran'], ['sh', '-c', 'touch ran'], []]) {
      const ran = await box.pen('exec', '--', ...(argv.length === 0 ? ['bash', '-c', 'touch ran'] : argv))
      expect([ran.code, ran.stderr.includes('may not be run')]).toEqual([126, true])
    }
    expect((await box.pen('exec', '--', 'no-such-program')).code).toBe(127)
    expect(box.of('tool-denied').map(({ reason }) => reason)).toEqual([
      'not-listed',
      'shell-off',
      'shell-off',
      'not-found',
    ])
  })
  box.config({ tools: { shell: true, allow: ['sh', 'touch'] } })
  await withStarted(box, async () => {
    expect((await sh(box, 'exit 7')).code).toBe(7)
    const shell = await box.start(['shell'], { stdin: 'echo $0; exit 3' }).ended
    expect([shell.code, shell.stdout]).toEqual([3, expect.stringContaining('sh')])
    const pen = await sh(box, `${PEN} files cat ran`)
    expect([pen.code, pen.stderr]).toEqual([
      125,
      expect.stringContaining('a soft sandbox has no file broker'),
    ])
    expect((await sh(box, 'kill -TERM $$')).code).toBe(143)
    expect((await box.pen('exec', '--', 'touch', 'ran')).code).toBe(0)
    expect(statSync(join(box.project, 'ran')).uid).toBe(box.owner.uid)
    const outside = await box.pen('exec', '--cwd', '/etc', '--', 'touch', 'x')
    expect([outside.code, outside.stderr]).toEqual([126, expect.stringContaining('list is refused')])
  })
})

forEverybody('input and both outputs pass, on a terminal too, and no other descriptor does', async box => {
  box.config(SHELL)
  await withStarted(box, async () => {
    const fed = await box.start(['exec', '--', 'sh', '-c', 'cat; echo err >&2'], { stdin: 'fed' }).ended
    expect([fed.code, fed.stdout, fed.stderr]).toEqual([0, 'fed', 'err\n'])
    expect((await sh(box, 'cd /proc/self/fd; for fd in *; do echo $fd; done')).stdout).toMatch(
      /^0\n1\n2\n(\d+\n)?$/,
    )
    expect(
      (await box.pen('exec', '--tty', '--', 'sh', '-c', 'test -t 0 && test -t 1 && echo tty')).stdout,
    ).toBe('tty\r\n')
  })
})

forEverybody(
  'limits hold, privileges cannot be gained, and home and scratch go with the sandbox',
  async box => {
    box.config({ ...SHELL, limits: { files: 123, disk: '1MiB' } })
    let home = ''
    await withStarted(box, async () => {
      const { stdout } = await sh(
        box,
        'ulimit -n; ulimit -f; ulimit -c; cat /proc/self/status | while read a b; do [ $a = NoNewPrivs: ] && echo $b; done; id -u; stat -c %a ~ $TMPDIR; echo $HOME',
      )
      const lines = stdout.trim().split('\n')
      home = lines.pop() ?? ''
      expect(lines).toEqual(['123', '2048', '0', '1', String(box.owner.uid), '700', '700'])
      expect(statSync(home).isDirectory()).toBe(true)
    })
    expect(existsSync(home)).toBe(false)
  },
)

forEverybody('a timeout ends a command and everything it left, and reports the output so far', async box => {
  box.config({ ...SHELL, exec: { timeout: '500ms', ceiling: '1s' } })
  await withStarted(box, async () => {
    // More than the ceiling is the ceiling.
    const late = await sh(box, `${LEAVING} trap "" TERM; sleep 300`, '--timeout', '500s')
    expect([late.code, late.stdout]).toEqual([124, 'up\n'])
    expect(await within(15_000, () => pidsIn(box, 'own', 'forked').every(pid => !lives(pid)))).toBe(true)
    expect(box.of('exec-end')).toMatchObject([{ reason: 'timeout' }])
    expect((await sh(box, 'echo on')).stdout).toBe('on\n')
  })
})

forEverybody('a command ends with its leftovers, and with no process of others', async box => {
  box.config(SHELL)
  // Like a process of another sandbox that became a child of the machine's init.
  const [program = '', ...rest] = [...box.owner.become, 'sh', '-c', 'sleep 60 > /dev/null 2>&1 & echo $!']
  const others = Bun.spawnSync([program, ...rest], { env: { PATH: '/usr/bin:/bin', PEN_EXEC: '1' } })
  const other = others.stdout.toString()
  try {
    await withStarted(box, async () => {
      const beside = Bun.spawn([...box.owner.become, 'sleep', '60'])
      expect((await sh(box, `${LEAVING} exit 5`)).code).toBe(5)
      expect(await within(15_000, () => pidsIn(box, 'own', 'forked').every(pid => !lives(pid)))).toBe(true)
      expect(lives(String(beside.pid))).toBe(true)
      beside.kill()
    })
    expect(lives(other)).toBe(true)
  } finally {
    process.kill(Number(other))
  }
})

const STAYING = `${LEAVING} trap "" TERM HUP; sleep 300`

forEverybody('when its supervisor is killed everything that it started ends', async box => {
  box.config(SHELL)
  await withStarted(box, async () => {
    const { pid } = JSON.parse((await box.pen('status', '--json')).stdout)
    const command = box.start(['exec', '--', 'sh', '-c', STAYING])
    expect(await within(15_000, () => command.said.stdout.includes('up'))).toBe(true)
    process.kill(pid, 'SIGKILL')
    await command.ended
    expect(await within(15_000, () => pidsIn(box, 'own', 'forked').every(one => !lives(one)))).toBe(true)
    expect((await box.pen('status')).code).toBe(1)
  })
})

/** The exec daemon is the parent of a command, and the supervisor is the daemon's. */
const SUPERVISOR = '$(read -r _ _ _ p _ < /proc/$PPID/stat; echo $p)'

forEverybody(
  'a command that stops or kills its exec daemon, its supervisor or both is still ended',
  async box => {
    box.config(SHELL)
    for (const line of [
      'kill -KILL $PPID',
      `s=${SUPERVISOR}; kill -STOP $s; kill -STOP $PPID`,
      `s=${SUPERVISOR}; kill -KILL $s $PPID`,
    ])
      await withStarted(box, async () => {
        const script = `echo $$ > pid; trap "" TERM HUP; setsid sh -c 'echo $$ > own; sleep 300' & while [ ! -s own ]; do :; done; echo > done; ${line}; sleep 300`
        const command = box.start(['exec', '--', 'sh', '-c', script])
        expect(await within(15_000, () => existsSync(join(box.project, 'done')))).toBe(true)
        await box.pen('stop')
        await command.ended
        expect([
          line,
          await within(15_000, () => pidsIn(box, 'pid', 'own').every(pid => !lives(pid))),
        ]).toEqual([line, true])
        await Bun.$`rm ${join(box.project, 'own')} ${join(box.project, 'done')}`.quiet()
      })
  },
)

forEverybody('a command that uses more memory than the limit ends the sandbox, which says so', async box => {
  box.config({ tools: { allow: ['node', 'python3', 'perl'] }, limits: { memory: '128MiB' } })
  await withStarted(box, async () => {
    await box.pen('exec', '--', 'perl', '-e', '$x = "a" x (600 * 1024 * 1024); sleep 60')
    expect(await within(15_000, () => box.of('limit-hit').length > 0)).toBe(true)
    expect(box.of('limit-hit')[0]).toMatchObject({ limit: 'memory', soft: true })
  })
})

forEverybody('a command that cannot be recorded does not run', async box => {
  box.config({ tools: { allow: ['touch'] } })
  const started = await box.pen(...KEEP_SOFT)
  expect(started.code).toBe(0)
  await box.pen('stop')
  await Bun.$`rm -r ${join(box.state, 'audit')}`.quiet()
  await Bun.write(join(box.state, 'audit'), '')
  expect((await box.pen(...KEEP_SOFT)).code).toBe(125)
  expect((await box.pen('exec', '--', 'touch', 'ran')).code).not.toBe(0)
  expect(box.has('ran')).toBe(false)
})
