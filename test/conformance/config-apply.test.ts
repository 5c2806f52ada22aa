/** Nothing in the project takes effect before it is shown and agreed to, by any command or race. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, quote } from './box.ts'
import { onTheHost } from './conformance.ts'
import { PEN } from './launcher.ts'
import { configOf, leftovers, pen, start } from './pen-command.ts'
import { Screen } from './screen.ts'

const document = (...http: string[]): string => `${JSON.stringify({ version: 1, network: { http } })}\n`
const propose = (box: Box, ...http: string[]): string => box.file('.pen/config.json', document(...http))
const live = (box: Box): string => (isLive(box) ? readFileSync(configOf(box), 'utf8') : '')
const isLive = (box: Box): boolean =>
  existsSync(join(box.home, '.pen/sandboxes')) && existsSync(configOf(box))
const isAllowed = async (box: Box, host: string): Promise<boolean> =>
  (await pen(box, 'policy', 'explain', `${host}:443`)).code === 0

const QUESTION = 'Type "yes" to confirm:'

onTheHost('P16 what was shown takes effect after a person agrees, and nothing else does', async box => {
  propose(box, 'shown.example.com')
  using screen = new Screen(box, `${PEN} config apply; echo "code $?"`)
  await screen.shows('! + network.http shown.example.com:443  (.pen/config.json:1)')
  await screen.shows('WIDENS: it can reach more hosts')
  await screen.shows(QUESTION)
  // The agent changes the file while the person reads.
  propose(box, 'evil.example.com')
  screen.type('yes\r')
  await screen.shows('applied for')
  await screen.shows('code 0')
  expect(live(box)).toBe(document('shown.example.com'))
  expect([await isAllowed(box, 'shown.example.com'), await isAllowed(box, 'evil.example.com')]).toEqual([
    true,
    false,
  ])
})

onTheHost(
  'P16 any other answer, and one typed too early, agrees to nothing',
  async box => {
    propose(box, 'evil.example.com')
    for (const answer of ['\r', 'y\r', 'no\r', 'Yes\r', 'yes please\r', '\x04', 'ye\x04\x04', '\x03']) {
      using screen = new Screen(box, `trap : INT; ${PEN} config apply; echo "code $?"`)
      await screen.shows(QUESTION)
      screen.type(answer)
      await screen.shows(/code (1|130)/)
      expect([answer, isLive(box)]).toEqual([answer, false])
    }
    using early = new Screen(box, `sleep 0.2; ${PEN} config apply; echo "code $?"`)
    early.type('y')
    await early.shows(QUESTION)
    early.type('\r')
    await early.shows('code 1')
    using closed = new Screen(box, `${PEN} config apply`)
    await closed.shows(QUESTION)
    closed.close()
    await closed.ended()
    expect(isLive(box)).toBe(false)
  },
  { users: 'ordinary' },
)

onTheHost(
  'P16 an edit of the live config while a person reads is not overwritten',
  async box => {
    expect((await pen(box, 'deny', 'bad.example.com')).code).toBe(0)
    propose(box, 'shown.example.com')
    using screen = new Screen(box, `${PEN} config apply; echo "code $?"`)
    await screen.shows(QUESTION)
    expect((await pen(box, 'deny', 'worse.example.com')).code).toBe(0)
    screen.type('yes\r')
    await screen.shows('was changed during your review')
    await screen.shows('code 125')
    expect(live(box)).toContain('worse.example.com')
    expect(live(box)).not.toContain('shown')
  },
  { users: 'ordinary' },
)

onTheHost(
  'P16 without a person nothing is asked: not of a pipe, a program or a sandbox',
  async box => {
    propose(box, 'evil.example.com')
    const shell = (line: string): string => box.host(`(${line}) 2>&1 || true`)
    expect(shell(`yes | ${PEN} config apply`)).toContain('not applied: no terminal to ask on')
    expect(shell(`${PEN} config apply < /dev/null`)).toContain('not applied: no terminal to ask on')
    expect(shell(`${PEN} config apply <&-`)).toContain('not applied: no terminal to ask on')
    expect(shell(`yes | ${PEN} config apply --json`)).toContain('"applied": false')
    for (const words of ['--yes', '--expect sha256:00', '--yes --expect sha256:00', '-y'])
      expect(shell(`yes | ${PEN} config apply ${words}; echo "code $?"`)).toContain('code 2')
    using inside = new Screen(box, `AGENT_IN_SANDBOX=1 ${PEN} config apply; echo "code $?"`)
    await inside.shows('does not work inside a sandbox')
    await inside.shows('code 125')
    expect(isLive(box)).toBe(false)
    // The allowed twin: with the digest of what was shown, no person is needed.
    const digest = /sha256:[0-9a-f]{64}/.exec(shell(`${PEN} config diff`))?.[0] ?? ''
    expect((await pen(box, 'config', 'apply', '--yes', '--expect', digest)).code).toBe(0)
    expect(await isAllowed(box, 'evil.example.com')).toBe(true)
  },
  { users: 'ordinary' },
)

onTheHost(
  'P16 a digest covers what was shown: with one byte more on either side nothing is applied',
  async box => {
    propose(box, 'shown.example.com')
    const diff = () => /sha256:[0-9a-f]{64}/.exec(box.host(`${PEN} config diff || true`))?.[0] ?? ''
    const apply = (digest: string) => pen(box, 'config', 'apply', '--yes', '--expect', digest)
    const first = diff()
    propose(box, 'shown.example.com', 'evil.example.com')
    expect((await apply(first)).code).toBe(2)
    propose(box, 'shown.example.com')
    box.file('.pen/http-allowlist.txt', 'evil.example.com:443\n')
    expect((await apply(first)).code).toBe(2)
    box.host('rm .pen/http-allowlist.txt')
    expect(isLive(box)).toBe(false)
    expect((await pen(box, 'deny', 'shown.example.com')).code).toBe(0)
    expect((await apply(first)).code).toBe(2)
    expect(await isAllowed(box, 'shown.example.com')).toBe(false)
    expect((await apply(diff())).code).toBe(0)
    expect(await isAllowed(box, 'shown.example.com')).toBe(true)
  },
  { users: 'ordinary' },
)

onTheHost(
  'P16 a config that came with the project takes effect by no other command',
  async box => {
    propose(box, 'evil.example.com')
    box.file('.pen/http-allowlist.txt', 'evil.example.com:443\n')
    for (const args of [
      ['init'],
      ['config', 'diff'],
      ['config', 'show'],
      ['config', 'get', 'network.http'],
      ['plan', '--offline'],
      ['run', '--offline', '--', 'true'],
      ['start', '--detach', '--backend', 'process', '--offline'],
      ['exec', '--', 'true'],
      ['restart'],
      ['stop'],
      ['agent', 'codex', '--dry-run-policy'],
      ['logs', '--suggest'],
      ['grants'],
      ['gc'],
      ['config', 'set', 'limits.pids', '99'],
      ['allow', 'good.example.com'],
      ['init'],
      ['config', 'backup'],
    ]) {
      await pen(box, ...args)
      expect([args, await isAllowed(box, 'evil.example.com')]).toEqual([args, false])
    }
    // The last command copied the effective config into the project.
    expect(readFileSync(join(box.project, '.pen/config.json'), 'utf8')).not.toContain('evil')
    expect(readdirSync(join(box.project, '.pen')).sort()).toEqual(['config.json', 'config.schema.json'])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P15 a proposal is shown with hostile bytes escaped',
  async box => {
    const name = 'evil\\u009b2J\\u001b]0;x\\u0007'
    box.file('.pen/config.json', `{"env":{"A":"${name}"}}`)
    using refused = new Screen(box, `${PEN} config apply; echo "code $?"`)
    await refused.shows('code 2')
    box.file('.pen/config.json', '{"env":{"A":"$(reboot) \\u00e9 \\\\u001b[2J"}}')
    using screen = new Screen(box, `${PEN} config apply; echo "code $?"`)
    await screen.shows('env A=$(reboot) é \\\\u001b[2J')
    await screen.shows(QUESTION)
    screen.type('no\r')
    await screen.shows('code 1')
    for (const { seen } of [refused, screen])
      for (const bytes of ['\x1b]', '\x9b', '\x1b[2J']) expect(seen).not.toContain(bytes)
  },
  { users: 'ordinary' },
)

onTheHost(
  'P16 widenings are marked in words as well as in colour',
  async box => {
    propose(box, 'shown.example.com')
    using screen = new Screen(box, `TERM=xterm ${PEN} config diff; echo "code $?"`)
    await screen.shows('\x1b[31m! + network.http shown.example.com:443')
    await screen.shows('\x1b[1mWIDENS')
    await screen.shows('code 1')
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 a wrong edit is reported with its position, offered again, and saved only when right',
  async box => {
    expect((await pen(box, 'config', 'set', 'limits.pids', '100')).code).toBe(0)
    // The first time it makes a mistake, the second time it fixes it.
    const editor = box.file(
      join(box.home, 'editor'),
      '#!/bin/sh\nif grep -q 100 "$1"; then sed -i s/100/true/ "$1"; else sed -i s/true/7/ "$1"; fi\n',
      0o755,
    )
    const run = `EDITOR=${quote(editor)} ${PEN} config edit; echo "code $?"`
    using screen = new Screen(box, run)
    await screen.shows('CONFIG_VALUE')
    await screen.shows(/config\.json:\d+:\d+/)
    await screen.shows(QUESTION)
    expect(live(box)).toContain('100')
    screen.type('yes\r')
    await screen.shows('the live config was changed')
    await screen.shows('code 0')
    expect(JSON.parse(live(box))).toEqual({ version: 1, limits: { pids: 7 } })
    expect(leftovers(box)).toEqual([])

    writeFileSync(configOf(box), '{"version":1,"limits":{"pids":100}}')
    using declined = new Screen(box, run)
    await declined.shows(QUESTION)
    declined.type('no\r')
    await declined.shows('code 1')
    // No person to ask: refused at once.
    const { code, stderr } = await start(box, ['config', 'edit'], ['env', `EDITOR=${editor}`]).ended
    expect([code, stderr.includes('CONFIG_VALUE')]).toEqual([2, true])
    expect([live(box), leftovers(box)]).toEqual(['{"version":1,"limits":{"pids":100}}', []])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P19 an editor that fails, or is overtaken, loses nothing',
  async box => {
    await pen(box, 'config', 'set', 'limits.pids', '100')
    const edit = (command: string) => start(box, ['config', 'edit'], ['env', `EDITOR=${command}`]).ended
    expect((await edit('false')).code).toBe(125)
    expect((await edit('/no/such/editor')).code).toBe(125)
    expect((await edit('true')).code).toBe(1)
    expect([JSON.parse(live(box)), leftovers(box)]).toEqual([{ version: 1, limits: { pids: 100 } }, []])
    const overtaken = await edit(`(cd ${box.project} && ${PEN} config set limits.pids 5) && sed -i s/100/6/`)
    expect([overtaken.code, JSON.parse(live(box))]).toEqual([125, { version: 1, limits: { pids: 5 } }])
    const kept = /your text is in (\S+\/config\.json)/.exec(overtaken.stderr)?.[1] ?? ''
    expect(readFileSync(kept, 'utf8')).toContain('6')
  },
  { users: 'ordinary' },
)

onTheHost(
  'P3 a .pen/ that pen makes while a sandbox runs counts as the sandbox’s, and is reported',
  async box => {
    const running = box.start(['/bin/sh', '-c', 'echo runs; sleep 30'], { through: 'exec "$@"' })
    await running.printed('runs')
    await Bun.sleep(100)
    for (const args of [['init'], ['config', 'set', 'limits.pids', '99'], ['config', 'backup']]) {
      const { code, stderr } = await pen(box, ...args)
      if (args[1] === 'set') expect(code).toBe(0)
      else
        expect([args, code, stderr]).toEqual([
          args,
          125,
          expect.stringContaining('a sandbox of this project'),
        ])
    }
    running.child.kill('SIGTERM')
    await running.ended
    // The allowed twin: without one it stays.
    expect((await pen(box, 'config', 'backup')).code).toBe(0)
    expect(existsSync(join(box.project, '.pen/config.json'))).toBe(true)
  },
)
