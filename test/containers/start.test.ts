/** How a container of pen begins and ends, on every engine. Judged by the state of the host and the engine. */
import { expect } from 'bun:test'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import { within } from '../until.ts'
import { ContainerProject, isGone, printed } from './sandbox.ts'

const onEachEngine = everyEngine()

onEachEngine(
  'P12 a command has no capability, no new privilege and a filter; the root is read-only',
  async engine => {
    using project = new ContainerProject(engine)
    const { out } = project.sh(
      'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; touch /x /usr/x /etc/x 2>&1 | grep -c Read-only; id -u; echo 1 > /proc/sys/kernel/domainname',
    )
    const [...lines] = out.trim().split('\n')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(lines).toContain(`${set}:\t0000000000000000`)
    expect(lines).toContain('NoNewPrivs:\t1')
    expect(lines).toContain('Seccomp:\t2')
    expect(lines.at(-2)).toBe('3')
    expect(Number(lines.at(-1))).toBeGreaterThan(0)
  },
)

onEachEngine(
  'P5 what a command makes belongs to the project’s owner, and its exit code is pen’s',
  async engine => {
    using project = new ContainerProject(engine)
    const { code } = project.sh('mkdir -p a/b; echo made > a/b/c; chmod u+s a/b/c; exit 7')
    const { uid, mode } = lstatSync(join(project.box.project, 'a/b/c'))
    expect([code, uid, mode & 0o6000]).toEqual([7, engine.who.uid, 0])
  },
)

onEachEngine('P3 denied, protected and pinned places are held; their neighbours are not', async engine => {
  using project = new ContainerProject(engine)
  project.box.file('.env', 'SECRET')
  project.box.file('.vscode/tasks.json', 'old')
  const { out } = project.sh(
    'cat .env; echo new > .vscode/tasks.json; mv .vscode v; rm -rf .vscode; echo fine > beside; cat .vscode/tasks.json',
  )
  expect(out).toBe('old')
  const read = (path: string) => readFileSync(join(project.box.project, path), 'utf8')
  expect([read('.env'), read('.vscode/tasks.json'), read('beside')]).toEqual(['SECRET', 'old', 'fine\n'])
})

onEachEngine('P2 a writable grant in a read-only project is writable, and nothing else is', async engine => {
  using project = new ContainerProject(engine)
  project.box.file('source', 'S')
  const { out } = project.sh(
    'echo r > output/file && cat output/file; echo x > source',
    '--profile',
    'strict',
  )
  expect([out, readFileSync(join(project.box.project, 'source'), 'utf8')]).toEqual(['r\n', 'S'])
  expect(readFileSync(join(project.box.project, 'output/file'), 'utf8')).toBe('r\n')
})

onEachEngine(
  'P1 paths with commas, quotes, colons, blanks and Unicode name themselves and nothing else',
  async engine => {
    using project = new ContainerProject(engine)
    const odd = project.box.directory(join(project.box.home, 'o,readonly "q": ü '))
    project.box.file(join(odd, 'f'), 'odd')
    project.box.file(join(project.box.home, 'o'), 'other')
    const { out, code } = project.sh(`cat ../o*/f; cat ../o`, '--read', odd)
    expect([out, code]).toEqual(['odd', 1])
  },
)

onEachEngine(
  'P1 a directory swapped for a link while the engine mounts never shows the link’s target',
  async engine => {
    using project = new ContainerProject(engine)
    project.box.file(join(project.box.home, 'private/f'), 'PRIVATE')
    const granted = project.box.directory(join(project.box.project, 'sub'))
    project.box.file(join(granted, 'f'), 'PUBLIC')
    const enough = new AbortController()
    const swap = (async () => {
      while (!enough.signal.aborted) {
        renameSync(granted, `${granted}.away`)
        symlinkSync(join(project.box.home, 'private'), granted)
        await Bun.sleep(3)
        rmSync(granted)
        renameSync(`${granted}.away`, granted)
        await Bun.sleep(3)
      }
    })()
    const seen: string[] = []
    for (let i = 0; i < 6; i++) {
      const child = project.start('cat sub/f', '--profile', 'strict', '--write', granted)
      let out = ''
      child.stdout?.on('data', (data: Buffer) => {
        out += data.toString()
      })
      await new Promise(resolve => child.once('close', resolve))
      seen.push(out)
    }
    enough.abort()
    await swap
    expect(seen.filter(out => out.includes('PRIVATE'))).toEqual([])
    // The allowed twin: a directory that is not swapped is shown.
    expect(project.sh('cat sub/f', '--profile', 'strict', '--write', granted).out).toBe('PUBLIC')
  },
  120_000,
)

onEachEngine(
  'P4 after SIGKILL of the supervisor nothing is left: no process, no container, no directory',
  async engine => {
    using project = new ContainerProject(engine)
    const child = project.start('echo up; setsid sleep 61 & exec sleep 60')
    await printed(child, 'up')
    const [name = ''] = project.containers()
    const init = Number(project.ask('inspect', '--format', '{{.State.Pid}}', name).out)
    expect(isGone(init)).toBe(false)
    child.kill('SIGKILL')
    expect(await within(2000, () => isGone(init))).toBe(true)
    expect(await within(10_000, () => project.containers().length === 0)).toBe(true)
    // The next run removes what it left on the disk.
    project.sh('true')
    expect(readdirSync(join(project.stateDir, 'containers'))).toEqual([])
  },
)

onEachEngine(
  'P14 SIGTERM ends a command that ignores it, and its container, within two seconds',
  async engine => {
    using project = new ContainerProject(engine)
    const child = project.start(
      'trap "" TERM INT HUP; (setsid sleep 62 &); echo up; while :; do sleep 1; done',
    )
    await printed(child, 'up')
    const [name = ''] = project.containers()
    const init = Number(project.ask('inspect', '--format', '{{.State.Pid}}', name).out)
    child.kill('SIGTERM')
    expect(await within(2000, () => isGone(init))).toBe(true)
    expect(await within(10_000, () => child.exitCode !== null && project.containers().length === 0)).toBe(
      true,
    )
  },
)

onEachEngine('two runs in one project at once each have a container', async engine => {
  using project = new ContainerProject(engine)
  const first = project.start('echo up; while [ ! -e go ]; do sleep 0.05; done; echo over')
  await printed(first, 'up')
  const over = printed(first, 'over')
  expect(project.sh('echo beside').out).toBe('beside\n')
  project.box.file('go', '')
  expect(await over).toContain('over')
})

onEachEngine('P21 a container that a dead pen left is removed; one of another owner stays', async engine => {
  using project = new ContainerProject(engine)
  expect(project.sh('true').code).toBe(0)
  const name = `pen-${project.stateDir.slice(project.stateDir.lastIndexOf('/') + 1)}`
  const image = project.ask('images', '--quiet').out.split('\n')[0] ?? ''
  const leave = (...labels: string[]) =>
    project.ask('create', '--name', name, ...labels.map(label => `--label=${label}`), image, 'true')
  const namespace = Number(/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0])
  expect(leave('pen=1', `pen.supervisor=1:0:${namespace}:${engine.who.uid}`).code).toBe(0)
  expect([project.sh('echo one').out, project.ask('inspect', name).code]).not.toEqual(['one\n', 0])
  // The last belongs to a pen in a container with the same daemon: its pids are not pids of this machine.
  for (const label of ['else=1', `pen.supervisor=1:0:${namespace + 1}:${engine.who.uid}`]) {
    expect(leave('pen=1', label).code).toBe(0)
    expect([project.sh('echo two').out, project.ask('inspect', name).code]).toEqual(['two\n', 0])
    expect(project.pen('gc', '--dry-run').out).not.toContain(`container ${name}\n`)
    project.ask('rm', '--force', name)
  }
})

onEachEngine(
  'P4 the next run removes what a killed run left in the engine; containers of others stay',
  async engine => {
    using project = new ContainerProject(engine)
    expect(project.sh('true').code).toBe(0)
    const run = '20200101-000000-abcdef'
    const name = `pen-${project.stateDir.slice(project.stateDir.lastIndexOf('/') + 1)}-${run}`
    const image = project.ask('images', '--quiet').out.split('\n')[0] ?? ''
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
    const label = `--label=pen.supervisor=4194304:1:${namespace}:${engine.who.uid}`
    expect(project.ask('create', '--name', `${name}-helper`, label, image, 'true').code).toBe(0)
    expect(project.ask('create', '--name', name, image, 'true').code).toBe(0)
    project.box.directory(join(project.stateDir, `containers/pen-4194304-1-${run}`))
    expect(project.sh('echo ran').out).toBe('ran\n')
    expect(project.ask('inspect', `${name}-helper`).code).not.toBe(0)
    expect(project.ask('inspect', name).code).toBe(0)
    project.ask('rm', '--force', name)
  },
)

onEachEngine('the modes of pen’s state do not depend on the umask of the user', async engine => {
  using project = new ContainerProject(engine)
  mkdirSync(join(project.box.project, 'd'), { recursive: true })
  const words = project.words('run', '--backend', engine.backend, '--offline', '--', 'echo', 'ran').argv
  const ran = Bun.spawnSync(['sh', '-c', 'umask 077; exec "$@"', 'sh', ...words])
  expect(ran.stdout.toString()).toBe('ran\n')
})
