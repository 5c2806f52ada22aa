import { expect } from 'bun:test'
import { PEN } from '../conformance/launcher.ts'
import { Screen } from '../conformance/screen.ts'
import { until } from '../until.ts'
import { lifecycleTest, START } from './project-sandbox.ts'

/** The screen's own `pen` adds --offline, which exec does not know. So this calls the program itself. */
const screenOf = (box: ConstructorParameters<typeof Screen>[0], line: string) =>
  new Screen(box, line.replaceAll('PEN', `command ${PEN}`))

lifecycleTest(
  'P15 a shell has its own terminal of the right size, also when it changes; modes are restored',
  async here => {
    await here.pen(...START)
    using screen = screenOf(
      here.box,
      'stty -a | grep -o " echo "; PEN shell; echo "code $?"; stty -a | grep -o " echo "',
    )
    await screen.shows('echo')
    await screen.shows('$ ')
    screen.type("PS1=ready'> '\r")
    await screen.shows('\nready> ')
    screen.type('test -t 0 && test -t 1 && stty size\r')
    await screen.shows('\n33 91\r\n')
    screen.type(
      // Blocked and waited for, so that it cannot come between two steps.
      `python3 -c 'import os, signal; signal.signal(28, lambda *_: 0); signal.pthread_sigmask(signal.SIG_BLOCK, {28}); os.write(1, b"listens\\n"); signal.sigwait({28}); os.write(1, b"%d %d\\n" % tuple(os.get_terminal_size()))'\r`,
    )
    await screen.shows('\nlistens')
    screen.resize(120, 50)
    await screen.shows('\n120 50')
    await screen.shows('ready> ')
    screen.type('sleep 50\r')
    await Bun.sleep(100)
    screen.type('\x03')
    await screen.shows('^C')
    screen.type('echo "was $?"\r')
    await screen.shows('\nwas 130')
    screen.type('exit 6\r')
    await screen.shows('code 6')
    await screen.shows('echo')
    await screen.ended()
    expect(await here.pen('status')).toMatchObject({ code: 0 })
  },
)

lifecycleTest(
  'P15 what a command writes on a terminal cannot drive it beyond ordinary output',
  async here => {
    await here.pen(...START)
    using screen = screenOf(
      here.box,
      `PEN exec -- printf 'a\\033]52;c;aGk=\\007b\\033[31mred\\033[0m\\n'; echo "code $?"`,
    )
    await screen.shows('code 0')
    expect(screen.seen).not.toContain('\x1b]52')
    expect(screen.seen).toContain('\x1b[31mred')
    await screen.ended()
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 a terminal that is closed ends its command',
  async here => {
    await here.pen(...START)
    const screen = screenOf(here.box, 'PEN exec -- sh -c "echo up; sleep 100"')
    await screen.shows('up')
    screen.close()
    await until(() => here.audit().some(({ kind }) => kind === 'exec-end'))
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P15 stats refresh in place until q, and the terminal is restored',
  async here => {
    await here.pen(...START)
    using screen = screenOf(here.box, 'PEN stats; echo "code $?"; stty -a | grep -o " echo "')
    await screen.shows('MEMORY')
    await screen.shows('MEMORY')
    screen.type('q')
    await screen.shows('code 0')
    await screen.shows('echo')
    await screen.ended()
    expect(screen.seen).toContain('\x1b[?25h')
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P15 pen start opens a shell on a terminal; leaving it leaves the sandbox running',
  async here => {
    using screen = screenOf(here.box, 'PEN start; echo "code $?"; PEN start; echo "code $?"')
    for (const code of [7, 8]) {
      await screen.shows('$ ')
      screen.type(`test -t 0 && exit ${code}\r`)
      await screen.shows(`code ${code}`)
    }
    await screen.ended()
    expect(await here.pen('status')).toMatchObject({ code: 0 })
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P15 what takes longer than half a second shows progress at a terminal',
  async here => {
    const stubborn = async () => {
      await here.pen(...START)
      await here
        .start(['exec', '--', 'sh', '-c', 'trap "" TERM; echo up; while :; do sleep 1; done'])
        .printed('up')
    }
    await stubborn()
    using screen = screenOf(here.box, 'PEN stop; echo "code $?"')
    await screen.shows('pen: stopping the sandbox …\r\n')
    await screen.shows('code 0')
    await screen.ended()
    await stubborn()
    expect(await here.pen('stop')).toMatchObject({ code: 0, stderr: '' })
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P16 pen rm asks, and only yes removes',
  async here => {
    await here.pen(...START)
    for (const answer of ['\r', 'no\r', 'y\r', '\x04', '\x03']) {
      using screen = screenOf(here.box, 'trap : INT; PEN rm; echo "code $?"')
      await screen.shows('Type "yes" to confirm:')
      screen.type(answer)
      await screen.shows(/code (1|130)/)
      expect([answer, (await here.pen('status')).code]).toEqual([answer, 0])
    }
    using closed = screenOf(here.box, 'PEN rm <&-; echo "code $?"')
    await closed.shows('is not a terminal')
    await closed.shows('code 2')
    using screen = screenOf(here.box, 'PEN rm; echo "code $?"')
    await screen.shows('Type "yes" to confirm:')
    screen.type('yes\r')
    await screen.shows('removed')
    await screen.shows('code 0')
    expect((await here.pen('status')).code).toBe(1)
  },
  { users: 'ordinary' },
)

lifecycleTest('P4 Ctrl-C during a start leaves no sandbox, or a complete one', async here => {
  const screen = screenOf(here.box, 'PEN start --detach; echo "code $?"')
  await Bun.sleep(40)
  screen.type('\x03')
  await screen.ended(10_000)
  const status = await here.pen('status')
  expect(await here.sh('echo works')).toMatchObject({ code: 0, stdout: 'works\n' })
  expect([0, 1]).toContain(status.code ?? -1)
})

lifecycleTest(
  'P15 -i passes the terminal’s input to a command without one; by itself it has none',
  async here => {
    await here.pen(...START)
    using screen = screenOf(here.box, 'PEN exec -- wc -c | cat; PEN exec -i -- cat | cat; echo "code $?"')
    await screen.shows(/(^|\n)0\r\n/)
    screen.type('typed\r')
    await screen.shows('typed\r\ntyped\r\n')
    screen.type('\x04')
    await screen.shows('code 0')
    await screen.ended()
  },
  { users: 'ordinary' },
)
