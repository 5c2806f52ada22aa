/**
 * `pen uninstall` removes what pen has in an engine. The engine is the test's own: all of pen's images in it
 * are removed.
 */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { EVERYBODY, type Who } from '../conformance/launcher.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import { BASE_NAME, type TestEngine } from '../engines/test-engine.ts'
import { skipUnless } from '../skip.ts'
import { Workshop } from './workshop.ts'

const ROOT = EVERYBODY.find(({ uid }) => uid === 0)
// Another storage of rootless podman would need another process to hold its namespaces.
const missing = ROOT === undefined ? 'needs root' : podmanMissing(ROOT)
const asRoot = skipUnless(missing === undefined, missing ?? '')

/** A few programs of the host. */
const BASE = `mkdir -p r/proc r/sys r/dev r/etc r/tmp r/home
for program in sh sleep; do cp --parents -L /bin/$program $(ldd /bin/$program | grep -o '/[^ ]*') r; done
tar c -C r . | "$@" import - ${BASE_NAME}`

/** The same podman with its own storage. */
function apart(engine: TestEngine, { box }: Workshop): TestEngine {
  const places = `graphroot = "${box.root}/storage"\nrunroot = "${box.root}/run"\n`
  const conf = box.file(join(box.root, 'storage.conf'), `[storage]\ndriver = "overlay"\n${places}`)
  const env = { ...engine.env, CONTAINERS_STORAGE_CONF: conf }
  const pairs = Object.entries({ HOME: box.root, ...env }).map(([name, value]) => `${name}=${value}`)
  const own: TestEngine = { ...engine, env, command: argv => ['env', ...pairs, 'podman', ...argv] }
  const made = spawnSync('sh', ['-ec', BASE, 'sh', ...own.command([])], { cwd: box.root, encoding: 'utf8' })
  if (made.status !== 0) throw new Error(made.stderr)
  return own
}

function clear(own: TestEngine, root: string): void {
  askOf(own, 'rm', '--all', '--force')
  spawnSync('umount', [join(root, 'storage/overlay')])
}

/** Its output, with errors. */
function askOf(engine: TestEngine, ...argv: readonly string[]): string {
  const [program = '', ...rest] = engine.command(argv)
  const { stdout, stderr, status } = spawnSync(program, rest, { encoding: 'utf8', timeout: 50_000 })
  return status === 0 ? stdout : `${status} ${stdout}${stderr}`
}

asRoot(
  'P4 pen uninstall removes pen’s containers and images, running or left; those of others stay',
  () => {
    const engine = podmanOf(ROOT as Who)
    using outer = new Workshop(engine)
    const own = apart(engine, outer)
    using _cleared = { [Symbol.dispose]: () => clear(own, outer.box.root) }
    using shop = new Workshop(own)
    using _stopped = { [Symbol.dispose]: () => void shop.pen('stop') }
    const lines = (...argv: string[]): string[] =>
      askOf(own, ...argv)
        .split('\n')
        .filter(Boolean)
        .sort()
    const images = () => lines('images', '--format', '{{.Repository}}:{{.Tag}}')
    const before = images()
    shop.configure({ backend: 'podman', network: { offline: true } })
    shop.dockerfile(`FROM ${BASE_NAME}\nLABEL text=project\n`)
    expect(shop.agreeAndBuild('--quiet').code).toBe(0)
    const project = images().filter(name => !before.includes(name))
    expect(project).toHaveLength(1)
    const make = (name: string, label: string): string => {
      const file = outer.box.file(
        join(outer.box.root, name, 'Dockerfile'),
        `FROM ${BASE_NAME}\nLABEL ${label}\n`,
      )
      return askOf(own, 'build', '--quiet', '--tag', name, dirname(file))
    }
    expect(make('pen/default:0123456789abcdef', 'pen=1')).toMatch(/^[0-9a-f]{64}\n$/)
    expect(make('others/default:0123456789abcdef', 'pen=2')).toMatch(/^[0-9a-f]{64}\n$/)
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
    const supervisor = `pen.supervisor=4194304:1:${namespace}:${outer.engine.who.uid}`
    const label = ['--label', 'pen=1', '--label', supervisor]
    askOf(own, 'create', '--name', 'pen-left', '--network=none', ...label, BASE_NAME, 'sleep')
    askOf(own, 'create', '--name', 'of-others', '--network=none', BASE_NAME, 'sleep')
    expect(shop.pen('start', '--detach')).toMatchObject({ code: 0 })
    const containers = () => lines('ps', '--all', '--format', '{{.Names}}')
    expect(containers()).toHaveLength(3)

    const done = JSON.parse(shop.pen('uninstall', '--yes', '--json').out)
    expect(done.left).toEqual([])
    const named = (kind: string) =>
      done.things.flatMap((one: { kind: string; name: string }) => (one.kind === kind ? [one.name] : []))
    expect(named('container')).toEqual(['pen-left'])
    expect(named('image').sort()).toEqual(
      ['pen/default:0123456789abcdef', ...project.map(name => name.replace('localhost/', ''))].sort(),
    )
    expect(containers()).toEqual(['of-others'])
    expect(images()).toEqual([...before, 'localhost/others/default:0123456789abcdef'].sort())
  },
  60_000,
)
