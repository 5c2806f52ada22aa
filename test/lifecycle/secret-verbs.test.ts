/** `pen secret`: values are typed without echo or piped, stored for their owner alone, and never printed. */
import { expect } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Tmux } from '../agents/tmux.ts'
import { Box } from '../conformance/box.ts'
import { onLinux } from '../conformance/conformance.ts'
import { LAUNCHERS, PEN } from '../conformance/launcher.ts'
import { skipUnless } from '../skip.ts'
import { ProjectSandbox } from './project-sandbox.ts'

const VALUE = 'zqxjwkvb-0123456789-zqxjwkvb'
const SHAPE = /has [a-z]{8}-[0-9]{10}-[a-z]{8}\n/

const claim = (title: string, body: (here: ProjectSandbox) => Promise<void>): void => {
  for (const launcher of LAUNCHERS)
    onLinux(`P22 ${title} (${launcher.name})`, async () => {
      const here = new ProjectSandbox(new Box(launcher))
      here.configure('{"version":1,"backend":"process"}')
      try {
        await body(here)
      } finally {
        await here.pen('stop')
        here.box.remove()
      }
    })
}

claim('a value that is typed is not shown, and in a file of its owner until it is removed', async here => {
  const { box, stateDir } = here
  const add = ['secret', 'add', 'TYPED', '--to', 'example.com:443']
  const terminal = new Tmux([...box.launcher.who.become, PEN, ...add], box.project, box.env())
  try {
    await terminal.shows('The value of TYPED?')
    terminal.type('-l', `${VALUE}x`)
    terminal.type('BSpace')
    terminal.type('Enter')
    expect(await terminal.shows('added: TYPED')).not.toContain('zqxj')
  } finally {
    terminal.close()
  }
  const stored = join(stateDir, 'secrets/TYPED')
  expect([readFileSync(stored, 'utf8'), statSync(stored).mode & 0o777]).toEqual([`${VALUE}\n`, 0o600])
  const piped = here.start(['secret', 'add', 'PIPED', '--to', 'example.com:443'], { stdin: `${VALUE}\n` })
  const said = [
    await piped.ended,
    await here.pen('secret', 'test', 'PIPED'),
    await here.pen('secret', 'list'),
  ]
  const ran = await here.pen(
    'run',
    '--',
    'sh',
    '-c',
    'echo "has $TYPED"; cat ~/.pen/*/*/secrets/* 2>/dev/null; true',
  )
  expect(ran.stdout).toMatch(SHAPE)
  const removed = await here.pen('secret', 'remove', 'TYPED')
  for (const { code, stdout, stderr } of [...said, ran, removed])
    expect([code, (stdout + stderr).includes('zqxj')]).toEqual([0, false])
  expect([existsSync(stored), existsSync(join(stateDir, 'secrets/PIPED'))]).toEqual([false, true])
})

const KEYRING = ['dbus-run-session', 'gnome-keyring-daemon', 'secret-tool'].map(name => `/usr/bin/${name}`)

/** A bus that starts no service by itself: it could start a second keyring, which is locked. */
const BUS = `<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`

for (const launcher of LAUNCHERS)
  skipUnless(KEYRING.every(existsSync), 'dbus, gnome-keyring and secret-tool')(
    `P22 the desktop’s keyring is a source (${launcher.name})`,
    async () => {
      const here = new ProjectSandbox(new Box(launcher))
      here.configure('{"version":1,"backend":"process"}')
      const daemon = 'gnome-keyring-daemon --foreground --unlock --components=secrets'
      const script = `(printf pw | ${daemon} >/dev/null 2>&1) & trap 'kill $(jobs -p)' EXIT
until printf ${VALUE} | secret-tool store --label=x service example 2>/dev/null; do sleep 0.1; done
"$0" secret add KEY --to example.com:443 --keyring service=example && "$0" run -- sh -c 'echo "has $KEY"'
"$0" secret remove KEY; "$0" secret add NONE --to example.com:443 --keyring service=other && "$0" run -- true`
      const [program = '', ...rest] = [
        ...launcher.who.become,
        'timeout',
        '30',
        'dbus-run-session',
        `--config-file=${here.box.file(join(here.box.root, 'bus.conf'), BUS)}`,
        'sh',
        '-c',
        script,
        PEN,
      ]
      try {
        const ran = Bun.spawnSync([program, ...rest], { cwd: here.box.project, env: here.box.env() })
        const text = ran.stdout.toString() + ran.stderr.toString()
        expect(text).toMatch(SHAPE)
        expect(text).toContain('the secret NONE: the keyring failed')
        expect(text).not.toContain('zqxj')
        expect(ran.exitCode).toBe(2)
      } finally {
        here.box.remove()
      }
    },
  )
