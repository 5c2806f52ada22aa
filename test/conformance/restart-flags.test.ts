/** When anything but the user ends a sandbox, the next command gets the same one again, or none. */
import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { lives, until } from '../until.ts'
import { conformance, type Options } from './conformance.ts'

const STORED = 'started.json'

/** A sandbox that cannot read `secret.txt`, without network and with little disk: none of these is a default. */
class Narrow extends ProjectSandbox {
  readonly flags = [...this.box.launcher.flags, '--deny', 'secret.txt', '--limit', 'disk=20MiB']

  async begin(...more: string[]): Promise<void> {
    this.box.file('secret.txt', 'secret')
    expect(await this.pen('start', '--detach', ...this.flags, ...more)).toMatchObject({ code: 0 })
  }

  /** The running sandbox, and whether a command in it can read the file. */
  async seen() {
    const status = JSON.parse((await this.pen('status', '--json')).stdout)
    const { running, backend, network, limits } = status
    const read = running ? await this.sh('cat secret.txt') : undefined
    return { running, backend, network, disk: limits?.disk, text: read?.stdout }
  }

  /** What the host has of it: the supervisor's end, without any cleanup by pen. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const pid = this.supervisor() ?? 0
    process.kill(pid, signal)
    await until(() => !lives(pid))
  }

  get narrow() {
    const [, backend] = this.box.launcher.flags
    return { running: true, backend, network: 'none (offline)', disk: 20 * 2 ** 20, text: '' }
  }
}

const claim = (title: string, body: (here: Narrow) => Promise<void>, options: Options = {}) =>
  conformance(
    title,
    async box => {
      const here = new Narrow(box)
      try {
        await body(here)
      } finally {
        await here.pen('stop')
      }
    },
    { timeout: 120_000, ...options },
  )

claim(
  'P25 P13 a limit that ends a sandbox is reported to its command, and the next has the same limit',
  async here => {
    await here.begin()
    const pid = here.supervisor() ?? 0
    const died = await here.sh('dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; sleep 30')
    expect(died.code).toBe(137)
    expect(died.stderr).toContain('limits.disk is 20 MiB')
    expect(died.stderr).toContain('--limit disk=40MiB')
    await until(() => !lives(pid))
    rmSync(join(here.box.project, 'big'), { force: true })
    const next = await here.sh('cat secret.txt')
    expect(next.stdout).toBe('')
    expect(next.stderr).toMatch(
      /^pen: started again with the flags .*--offline.*--deny secret\.txt --limit disk=20MiB; pen stop/m,
    )
    expect(await here.seen()).toEqual(here.narrow)
    // Printed once, by the command that started it.
    expect((await here.sh('true')).stderr).toBe('')
    // The allowed twin: after the user stops it, the next one starts without the flags.
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    await here.pen('start', '--detach', ...here.box.launcher.flags)
    expect(await here.seen()).toMatchObject({ text: 'secret' })
  },
)

claim('P25 a killed sandbox comes back with its flags, whichever command starts it', async here => {
  await here.begin()
  const starters: readonly (readonly [NodeJS.Signals, readonly string[]])[] = [
    ['SIGKILL', ['shell']],
    ['SIGKILL', ['restart']],
    // As at shutdown of the machine, which asks every process to end.
    ['SIGTERM', ['start', '--detach']],
    ['SIGKILL', ['start', '--detach', '--env', 'MORE=1']],
  ]
  for (const [signal, words] of starters) {
    await here.end(signal)
    await here.pen('gc')
    expect(await here.seen()).toEqual({ ...NONE, running: false })
    expect([words, await here.pen(...words)]).toMatchObject([words, { code: 0 }])
    expect([words, await here.seen()]).toEqual([words, here.narrow])
  }
  expect(await here.sh('echo $MORE')).toMatchObject({ stdout: '1\n' })
})

const NONE = { backend: undefined, network: undefined, disk: undefined, text: undefined }
const ONCE = 'it is the host that reads what was started'

claim(
  'P25 an agent gets no weaker sandbox of its own while the flags of a start hold',
  async here => {
    await here.begin()
    await here.end('SIGKILL')
    const refused = await here.pen('agent', 'codex')
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('is not prepared for')])
    expect(await here.seen()).toMatchObject({ running: false })
    // The allowed twin: not refused for this reason.
    await here.pen('stop')
    expect((await here.pen('agent', 'codex', '--', '--version')).stderr).not.toContain('is not prepared for')
  },
  { once: ONCE, users: 'ordinary' },
)

claim(
  'P25 the flags of a start hold below its directory, and only until pen stop',
  async here => {
    await here.begin()
    const cwd = here.box.directory(join(here.box.project, 'src/deep'))
    await here.end('SIGKILL')
    // The project has no config: only the start makes it one.
    expect(await here.start(['exec', 'cat', '../../secret.txt'], { cwd }).ended).toMatchObject({ stdout: '' })
    expect(await here.seen()).toEqual(here.narrow)
    // In addition to the first flags.
    await here.pen('restart', '--limit', 'pids=77')
    expect(await here.seen()).toEqual(here.narrow)
    expect(JSON.parse((await here.pen('status', '--json')).stdout).limits.pids).toBe(77)
    expect(await here.pen('restart', '--allow', 'a.test')).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('--allow a.test has no effect'),
    })
    expect((await here.pen('allow', 'a.test')).stderr).toContain('was started with --offline')
    expect(await here.seen()).toEqual(here.narrow)
    await here.end('SIGKILL')
    // A flag that replaces an earlier one is named as it is now.
    const { stderr } = await here.pen('start', '--detach', '--limit', 'disk=30MiB')
    expect(stderr).toMatch(/last start and new ones: .*--limit disk=30MiB --limit pids=77; pen stop/)
    expect(await here.seen()).toEqual({ ...here.narrow, disk: 30 * 2 ** 20 })
    await here.end('SIGKILL')
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    expect((await here.pen('allow', 'a.test')).stderr).toBe('')
    await here.pen('start', '--detach', ...here.box.launcher.flags)
    expect(await here.seen()).toMatchObject({ disk: 10 * 2 ** 30, text: 'secret' })
  },
  { once: ONCE, users: 'ordinary' },
)

claim(
  'P25 unreadable flags and a missing engine stop the start until pen stop',
  async here => {
    await here.begin()
    await here.end('SIGKILL')
    const file = join(here.stateDir, STORED)
    const stored = JSON.parse(await Bun.file(file).text())
    const order = { ...stored.order, flags: { files: { deny: ['secret.txt'] } } }
    // A file of another pen version, half a file, and a container of an engine that does not answer.
    const written = ['', '{"version":2}', JSON.stringify({ ...stored, order, backend: 'docker' })]
    for (const text of written) {
      here.box.file(file, text, 0o600)
      const env = { DOCKER_HOST: `unix://${here.box.home}/no-daemon` }
      for (const words of [['exec', 'cat', 'secret.txt'], ['restart'], ['start', '--detach']]) {
        const refused = await here.start(words, { env }).ended
        expect([words, refused]).toMatchObject([
          words,
          { code: 125, stderr: expect.stringContaining('pen stop') },
        ])
      }
      expect(await here.seen()).toMatchObject({ running: false })
    }
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    await here.begin()
    expect(await here.seen()).toEqual(here.narrow)
  },
  { once: ONCE, users: 'ordinary' },
)

claim(
  'P25 the flags of a failed start do not hold',
  async here => {
    const flags = [...here.box.launcher.flags, '--deny', 'secret.txt']
    here.box.file('secret.txt', 'secret')
    expect((await here.pen('start', '--detach', ...flags, '--allow', 'a..b:1')).code).toBe(2)
    expect(await here.pen('exec', '--', 'cat', 'secret.txt')).toMatchObject({ stdout: 'secret' })
  },
  { once: ONCE, users: 'ordinary' },
)
