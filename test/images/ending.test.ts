/** A build that is ended leaves nothing: no process, no container, no directory. */
import { expect } from 'bun:test'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import { BASE_NAME } from '../engines/test-engine.ts'
import { tinyImage } from './tiny.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine()

for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const)
  onEachEngine(`P4 P14 nothing of a build is left after ${signal}`, async engine => {
    using shop = new Workshop(engine)
    const mark = `9${String(Math.random()).slice(2, 8)}`
    shop.dockerfile(`ARG PEN_BASE\nFROM $PEN_BASE\nRUN sleep ${mark}\n`)
    const digest = /^sha256:\w+$/m.exec(shop.build().out)?.[0] ?? ''
    const { argv } = shop.words('build', '--backend', engine.backend, '--yes', '--expect', digest)
    const before = workingContainers(shop)
    const child = spawn(argv[0] ?? '', argv.slice(1), { stdio: 'ignore' })
    const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
    await until(() => running(mark).length > 0)
    // Builds of other tests in the same storage end by themselves.
    const added = workingContainers(shop).filter(id => !before.includes(id))
    // `setpriv` and `env` exec their command: the process is the same.
    process.kill(child.pid ?? 0, signal)
    const code = await ended
    if (signal !== 'SIGKILL') expect(code).toBe(signal === 'SIGINT' ? 130 : 143)
    await until(() => running(mark).length === 0)
    await until(() => !workingContainers(shop).some(id => added.includes(id)))
    if (signal !== 'SIGKILL') expect(buildDirectories(shop)).toEqual([])
    // The next build removes what a killed one had to leave.
    shop.dockerfile('ARG PEN_BASE\nFROM $PEN_BASE\n')
    expect(shop.agreeAndBuild('--quiet')).toMatchObject({ code: 0, err: '' })
    expect(buildDirectories(shop)).toEqual([])
  })

onEachEngine(
  'P4 the next image check removes the container of a killed one; containers of others stay',
  async engine => {
    using shop = new Workshop(engine)
    shop.dockerfile(tinyImage('true', `LABEL look=${Math.random()}`))
    const mark = String(Math.random()).slice(2, 10)
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
    const labels = ['--label=pen=1', `--label=pen.supervisor=4194304:1:${namespace}:${engine.who.uid}`]
    const create = (name: string, ...more: string[]) =>
      shop.ask('create', `--name=${name}`, '--network=none', ...more, BASE_NAME, 'true').code
    const [left, mine] = [`pen-look-${mark}`, `pen-look-mine-${mark}`]
    expect([create(left, ...labels), create(mine)]).toEqual([0, 0])
    expect(shop.agreeAndBuild('--quiet')).toMatchObject({ code: 0 })
    const ran = shop.pen('run', '--backend', engine.backend, '--offline', '--', 'echo', 'ran')
    expect(ran).toMatchObject({ code: 0, out: 'ran\n' })
    expect([left, mine].map(name => shop.ask('inspect', name).code === 0)).toEqual([false, true])
    shop.ask('rm', '--force', mine)
  },
)

/** The ids of containers in which a build runs. podman lists them separately. */
const workingContainers = (shop: Workshop): string[] =>
  shop
    .ask(
      'ps',
      '--all',
      ...(shop.engine.backend === 'podman' ? ['--external'] : []),
      '--format',
      '{{.ID}} {{.Command}}',
    )
    .out.split('\n')
    .filter(line => /buildah|sleep/.test(line))
    .map(line => line.split(' ')[0] ?? '')

const buildDirectories = (shop: Workshop): string[] =>
  existsSync(shop.stateDir) ? readdirSync(shop.stateDir).filter(name => name.startsWith('build-')) : []

/** Processes that sleep this long. */
function running(mark: string): number[] {
  return pids().filter(pid => commandLine(pid).join(' ') === `sleep ${mark}`)
}

const pids = (): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)

function commandLine(pid: number): string[] {
  try {
    return readFileSync(join('/proc', String(pid), 'cmdline'), 'utf8')
      .split('\0')
      .slice(0, -1)
  } catch {
    return [] // it is gone
  }
}

async function until(holds: () => boolean, withinMs = 20_000): Promise<void> {
  const late = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > late) throw new Error('the expected state did not occur in time')
    await Bun.sleep(50)
  }
}
