/** A missing base image is fetched, from a registry of the test on loopback. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { tinyImage } from './tiny.ts'
import { Workshop } from './workshop.ts'

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

let registry: {
  readonly at: string
  readonly dir: string
  readonly child: ChildProcess
  readonly conf: string
}

beforeAll(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'pen-registry-'))
  chmodSync(dir, 0o755)
  const at = `127.0.0.1:${await freePort()}`
  const settings = join(dir, 'config.yml')
  writeFileSync(
    settings,
    `version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: ${dir}/blobs\nhttp:\n  addr: ${at}\n`,
  )
  // Docker accepts plain HTTP on loopback by default; podman needs a setting.
  const conf = join(dir, 'registries.conf')
  writeFileSync(conf, `[[registry]]\nlocation = "${at}"\ninsecure = true\n`)
  const child = spawn('docker-registry', ['serve', settings], { stdio: 'ignore' })
  registry = { at, dir, child, conf }
  for (let n = 0; n < 200; n++) {
    if ((await fetch(`http://${at}/v2/`).catch(() => undefined))?.ok === true) return
    await Bun.sleep(50)
  }
  throw new Error('the registry did not start')
})

afterAll(() => {
  registry.child.kill('SIGKILL')
  rmSync(registry.dir, { recursive: true, force: true })
})

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

/** Puts a small image into the registry, and removes it from the engine. A file in it identifies it. */
function publish(shop: Workshop, mark: string): string {
  const name = `${registry.at}/tiny:${mark}`
  const dir = shop.box.directory(join(shop.box.root, 'tiny'))
  shop.box.file(join(dir, 'Dockerfile'), tinyImage(`echo ${mark} >/r/mark`))
  const quiet = shop.engine.backend === 'docker' ? ['--network=none'] : ['--network=none', '--pull=never']
  const tls = shop.engine.backend === 'podman' ? ['--tls-verify=false'] : []
  const env = { ...process.env, ...shop.engine.env, DOCKER_BUILDKIT: '0' }
  const ask = (...argv: string[]) => {
    const [program = '', ...rest] = shop.engine.command(argv)
    const { status, stderr } = spawnSync(program, rest, { encoding: 'utf8', env })
    if (status !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
  }
  ask('build', '--quiet', ...quiet, '--tag', name, dir)
  ask('push', ...tls, name)
  ask('rmi', name)
  return name
}

const withRegistry = (engine: TestEngine): TestEngine => ({
  ...engine,
  env: { ...engine.env, CONTAINERS_REGISTRIES_CONF: registry.conf },
})

onEachEngine(
  'a missing base is fetched with progress, once; with image.pull "never" it is not',
  async engine => {
    using shop = new Workshop(withRegistry(engine))
    const mark = `m${String(Math.random()).slice(2, 10)}`
    const base = publish(shop, mark)
    shop.dockerfile(`FROM ${base}\nLABEL of=${mark}\n`)
    shop.configure({ image: { pull: 'never' } })
    const never = shop.agreeAndBuild()
    expect([never.code, never.out]).toEqual([125, ''])
    expect(never.err).toContain(`the base image ${base} is not on this machine, and image.pull is "never"`)
    shop.configure({})
    const built = shop.build()
    expect(built).toMatchObject({ code: 0 })
    expect(built.err).toContain(`pen: fetching the image ${base}`)
    // The engine's progress output.
    expect(built.err).toMatch(/Copying blob|Pull complete/)
    expect(shop.inside(built, 'cat /mark')).toBe(`${mark}\n`)
    expect(shop.build('--no-cache').err).not.toContain('fetching')
    shop.ask('rmi', '--force', base)
  },
)

onEachEngine('P20 an image that cannot be fetched is reported with its reason and a fix', async engine => {
  using shop = new Workshop(withRegistry(engine))
  const build = (base: string) => {
    shop.configure({ image: { args: { BASE: base } } })
    return shop.build()
  }
  const absent = build(`${registry.at}/absent:1`)
  expect([absent.code, absent.out]).toEqual([125, ''])
  expect(absent.err).toMatch(/could not fetch the image \S+\/absent:1: .*(manifest|unknown|not found)/)
  expect(absent.err).toContain('fix: check the name and the tag of the image')
  const unreached = build(`127.0.0.1:${await freePort()}/tiny:1`)
  expect([unreached.code, unreached.out]).toEqual([125, ''])
  expect(unreached.err).toMatch(/could not fetch the image .*(connection refused|dial)/)
  expect(unreached.err).toContain('fix: check the connection to the registry')
})
