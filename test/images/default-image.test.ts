/** pen's own image: small, complete, and built without network when its base has everything. */
import { expect } from 'bun:test'
import { EVERYBODY, type Who } from '../conformance/launcher.ts'
import { makeBase } from '../engines/base-image.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import { skipUnless } from '../skip.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

const MOST_BYTES = 400_000_000

onEachEngine(
  'the default image is built without network, and has what a project needs to build',
  async engine => {
    using shop = new Workshop(engine)
    const built = shop.build('--offline')
    expect([built.code, built.err]).toEqual([0, expect.stringContaining('PACKAGES')])
    expect(built.out).toMatch(/^built: pen\/default:[0-9a-f]{16}\n$/)
    const said = shop.inside(
      built,
      'git --version; gcc --version | head -1; make --version | head -1; ssh -V 2>&1; curl --version | head -1; tini --version; id; pwd; ls /var/lib/apt/lists',
    )
    for (const word of [
      'git version',
      'gcc',
      'GNU Make',
      'OpenSSH',
      'curl 7',
      'tini version',
      'uid=1000(agent) gid=1000(agent)',
      '/home/agent',
    ])
      expect(said).toContain(word)
    expect(said).toEndWith('/home/agent\n')
    // The second time nothing is rebuilt, and the image is the same.
    const first = JSON.parse(shop.build('--offline', '--json').out)
    expect(JSON.parse(shop.build('--offline', '--json').out)).toEqual(first)
    expect(first).toMatchObject({ built: true, engine: engine.backend })
  },
)

const [me] = EVERYBODY
const why = me === undefined ? 'no user to run tests as' : podmanMissing(me)

skipUnless(why === undefined, why ?? '')(
  'the default image is smaller than 400 MB, and contains neither Node nor an agent',
  () => {
    const engine = podmanOf(me as Who)
    using shop = new Workshop(engine)
    // With only the packages of the default image: the extra ones for tests do not belong to it.
    const { key, slim } = makeBase()
    const name = `localhost/pen-test:slim-${key}`
    if (shop.ask('image', 'exists', name).code !== 0) expect(shop.ask('import', slim, name).code).toBe(0)
    shop.configure({ image: { args: { BASE: name } } })
    const built = shop.build('--offline')
    expect(shop.inside(built, 'ls /usr/local/bin; command -v node npm claude codex; true')).toBe('')
    const image = `localhost/${/^built: (\S+)$/m.exec(built.out)?.[1]}`
    const size = Number(shop.ask('image', 'inspect', '--format', '{{.Size}}', image).out)
    expect(size).toBeGreaterThan(100_000_000)
    expect(size).toBeLessThan(MOST_BYTES)
  },
  60_000,
)

onEachEngine(
  'P20 with image.pull never a missing base is not fetched, and pen names the command for it',
  async engine => {
    using shop = new Workshop(engine)
    shop.configure({ image: { pull: 'never', args: { BASE: 'registry.example.com/none:1' } } })
    const built = shop.build()
    expect([built.code, built.out]).toEqual([125, ''])
    expect(built.err).toContain('the base image registry.example.com/none:1 is not on this machine')
    expect(built.err).toContain('pen build --pull')
  },
)
