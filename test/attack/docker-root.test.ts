/**
 * Docker as an ordinary user: pen enters the containers of root's daemon through a root helper, a container
 * beside the sandbox's. Nothing of the sandbox or its image reaches the root helper, and neither outlives the
 * other or the supervisor.
 */
import { expect } from 'bun:test'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PEN } from '../conformance/launcher.ts'
import { ContainerProject, isGone, printed } from '../containers/sandbox.ts'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { tinyImage } from '../images/tiny.ts'
import { Workshop } from '../images/workshop.ts'
import { within } from '../until.ts'

const byHelper = everyEngine(['docker'], { docker: 'ordinary' })

interface RootHelper {
  readonly id: string
  readonly pid: number
}

/** The container of a project, running or not, or undefined. */
function rootHelpers(shop: Workshop): RootHelper[] {
  const filter = `label=pen.helper=${shop.stateDir.slice(shop.stateDir.lastIndexOf('/') + 1)}`
  const ids = shop.ask('ps', '--all', '--quiet', '--no-trunc', '--filter', filter).out
  return ids
    .split('\n')
    .filter(Boolean)
    .map(id => ({ id, pid: Number(shop.ask('inspect', '--format', '{{.State.Pid}}', id).out) }))
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

byHelper(
  'P1 P10 P12 nothing inside sees the root helper, its sockets or its descriptors, and it runs',
  async engine => {
    using project = new ContainerProject(engine)
    const looks = [
      'grep -l __[r]oot-helper /proc/[0-9]*/cmdline 2>/dev/null',
      'find / -xdev -type s 2>/dev/null; ls -d /.pen-*/daemon /.pen-*/shown /run/pen/daemon /run/pen/shown /run/pen/orders 2>/dev/null',
      'kill -9 1; kill -STOP 1; cat /proc/1/environ; ls /proc/1/fd; ls /proc/1/root',
      'grep -E "/(orders|descriptors|shown)$" /proc/net/unix',
      'echo looked',
      'while [ ! -e go ]; do sleep 0.05; done; echo over',
    ]
    const child = project.start(looks.join('\n'))
    const over = printed(child, 'over')
    expect(await printed(child, 'looked')).toBe('looked\n')
    const [helper] = rootHelpers(project)
    expect(readFileSync(`/proc/${helper?.pid}/cmdline`, 'latin1')).toContain('__root-helper')
    project.box.file('go', '')
    await over
    expect(await within(10_000, () => isOver(child, project))).toBe(true)
  },
)

byHelper('P17 a root helper that is killed takes the sandbox with it, and pen says so', async engine => {
  using project = new ContainerProject(engine)
  const child = project.start('echo up; exec sleep 60')
  let said = ''
  child.stderr?.on('data', (data: Buffer) => {
    said += data.toString()
  })
  await printed(child, 'up')
  const [name = ''] = project.containers()
  const init = Number(project.ask('inspect', '--format', '{{.State.Pid}}', name).out)
  process.kill(rootHelpers(project)[0]?.pid ?? 0, 'SIGKILL')
  expect(await within(2000, () => isGone(init))).toBe(true)
  expect(await within(10_000, () => ended(child))).toBe(true)
  expect([child.exitCode, said]).toEqual([125, expect.stringContaining('helper beside the container ended')])
  expect(project.containers()).toEqual([])
})

const isOver = (child: ChildProcess, project: ContainerProject): boolean =>
  ended(child) && project.containers().length === 0 && rootHelpers(project).length === 0

byHelper(
  'P4 a supervisor killed at any moment leaves neither the sandbox nor the root helper',
  async engine => {
    using project = new ContainerProject(engine)
    // A number that no other program of the machine uses.
    const command = `sleep 63.${process.pid}`
    for (const delay of [60, 150, 230, 300, 380, 480, 700]) {
      const child = project.start(`exec ${command}`)
      await Bun.sleep(delay)
      child.kill('SIGKILL')
      expect([delay, await within(10_000, () => isOver(child, project))]).toEqual([delay, true])
      const left = spawnSync('pgrep', ['-f', `^${command.replace('.', '[.]')}$`], { encoding: 'utf8' }).stdout
      expect([delay, left]).toEqual([delay, ''])
    }
    expect(project.sh('echo again').out).toBe('again\n')
  },
  120_000,
)

/** A shell line follows. */
const RUN = ['run', '--backend', 'docker', '--offline', '--', 'sh', '-c'] as const

/** Only these variables could mislead it. */
const HOSTILE = `ENV LD_PRELOAD=/evil.so LD_AUDIT=/evil.so LD_LIBRARY_PATH=/evil GCONV_PATH=/evil BUN_OPTIONS=--preload=/evil.js`

byHelper(
  'P12 the root helper’s container is empty: no file and no variable of the image is in it',
  async engine => {
    using shop = imageWith(engine, HOSTILE)
    const run = [...RUN, 'echo up; while [ ! -e go ]; do sleep 0.05; done']
    const child = begin(shop, run)
    await printed(child, 'up')
    const [helper] = rootHelpers(shop)
    const asked = (format: string) =>
      JSON.parse(shop.ask('inspect', '--format', `{{json ${format}}}`, helper?.id ?? '').out)
    const variables = (asked('.Config.Env') as string[]).map(pair => pair.replace(/=.*/, ''))
    expect(variables.toSorted((a, b) => a.localeCompare(b))).toEqual([
      'AGENT_IN_SANDBOX',
      'LD_AUDIT',
      'LD_LIBRARY_PATH',
      'LD_PRELOAD',
    ])
    expect(asked('.HostConfig.Privileged')).toBe(false)
    expect(asked('.HostConfig.NetworkMode')).toBe('none')
    const empty = shop
      .ask('image', 'inspect', '--format', '{{.Size}} {{json .Config.Env}}', asked('.Image'))
      .out.trim()
    expect(empty).toBe('0 null')
    shop.box.file('go', '')
    expect(await within(10_000, () => ended(child))).toBe(true)
    expect(child.exitCode).toBe(0)
  },
)

byHelper(
  'P12 an empty image of that name that asks for more is not used for the root helper',
  async engine => {
    using shop = new ContainerProject(engine)
    const named = 'pen/helper:1'
    const forged = ['--change', 'VOLUME /proc', '--change', 'ENV LD_PRELOAD=/evil.so']
    for (const change of [forged.slice(0, 2), forged.slice(2)]) {
      const [program = '', ...words] = engine.command(['import', ...change, '-', named])
      const made = spawnSync(program, words, { input: Buffer.alloc(1024), encoding: 'utf8' }).stdout.trim()
      rmSync(join(shop.box.home, '.pen/cache/docker-helper.json'), { force: true })
      expect(shop.sh('echo ran').out).toBe('ran\n')
      expect(shop.ask('image', 'inspect', '--format', '{{.Id}}', named).out.trim()).not.toBe(made)
      shop.ask('rmi', '--force', made)
    }
  },
)

byHelper('P5 P12 an image whose /etc and /proc link into the project runs without them', async engine => {
  using shop = imageWith(
    engine,
    '',
    project => `rmdir /r/etc /r/proc && ln -s ${project} /r/etc && ln -s ${project} /r/proc`,
  )
  const { project } = shop.box
  shop.box.file('ld.so.preload', '/evil.so\n')
  const said = shop.pen(...RUN, 'echo inside; cat /proc/1/comm')
  expect(said).toMatchObject({ code: 0, out: expect.stringMatching(/^inside\n\S+\n$/), err: '' })
  expect(readdirSync(project).toSorted((a, b) => a.localeCompare(b))).toEqual(['.pen', 'ld.so.preload'])
})

byHelper('P12 no function of pen’s exec daemon is replaced by a file of the image', async engine => {
  using shop = imageWith(engine, 'ENV BUN_JSC_functionOverrides=/overrides')
  const said = shop.pen('run', '--backend', 'docker', '--offline', '--', 'echo', 'inside')
  expect([said.code, said.out]).toEqual([125, ''])
})

byHelper('P12 P20 a pen binary that the sandbox could replace is not started as root', async engine => {
  using project = new ContainerProject(engine)
  const copy = join(project.box.project, 'pen')
  copyFileSync(PEN, copy)
  const { argv } = project.words('run', '--backend', 'docker', '--offline', '--', 'echo', 'ran')
  const [program = '', ...rest] = argv.map(word => (word === PEN ? copy : word))
  const said = spawnSync(program, rest, { encoding: 'utf8', timeout: 55_000 })
  expect([said.status, said.stdout]).toEqual([125, ''])
  expect(said.stderr).toContain('may write to pen’s own program')
})

function imageWith(
  engine: TestEngine,
  lines: string,
  done: (project: string) => string = () => 'echo > /r/overrides',
): Workshop {
  const shop = new Workshop(engine)
  shop.dockerfile(tinyImage(done(shop.box.project), lines))
  const built = shop.agreeAndBuild('--offline')
  if (built.code !== 0) throw new Error(`${built.code} ${built.out}${built.err}`)
  return shop
}

function begin(shop: Workshop, words: readonly string[]): ChildProcess {
  const [program = '', ...rest] = shop.words(...words).argv
  return spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
}
