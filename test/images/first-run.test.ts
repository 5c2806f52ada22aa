/**
 * What a sandbox starts from: pen builds its own image when it is first needed, and a project's never without a
 * person.
 */
import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { everyEngine } from '../engines/every-engine.ts'
import { tinyImage } from './tiny.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

const run = (shop: Workshop, ...command: string[]) =>
  shop.pen('run', '--backend', shop.engine.backend, '--offline', '--', ...command)

onEachEngine('the default image is built by the first run that needs it, and by no other', async engine => {
  using shop = new Workshop(engine)
  // Has no meaning without NODE, and makes it an image that was never built.
  shop.configure({ image: { args: { NODE_SHA256: randomBytes(32).toString('hex') } } })
  const first = run(shop, 'cat', '/etc/debian_version')
  expect([first.code, first.out]).toEqual([0, expect.stringMatching(/^12/)])
  expect(first.err).toContain('building the image of sandboxes, once')
  const second = run(shop, 'cat', '/etc/debian_version')
  expect([second.code, second.out]).toEqual([0, first.out])
  expect(second.err).not.toContain('building')
  const name = /pen\/default:[0-9a-f]{16}/.exec(first.err)?.[0] ?? ''
  expect(shop.ask('rmi', engine.backend === 'podman' ? `localhost/${name}` : name).code).toBe(0)
})

onEachEngine(
  'P16 a run stops at a Dockerfile without agreement, and warns of one that changed',
  async engine => {
    using shop = new Workshop(engine)
    const dockerfile = (mark: string) => tinyImage(`echo ${mark} >/r/mark`)
    shop.dockerfile(dockerfile('first'))
    const stopped = run(shop, 'cat', '/mark')
    expect([stopped.code, stopped.out]).toEqual([125, ''])
    expect(stopped.err).toContain('you have not agreed to')
    expect(stopped.err).toContain('pen build')
    expect(shop.agreeAndBuild('--quiet')).toMatchObject({ code: 0, err: '' })
    const agreed = run(shop, 'cat', '/mark')
    expect([agreed.code, agreed.out]).toEqual([0, 'first\n'])
    shop.dockerfile(dockerfile('evil'))
    const changed = run(shop, 'cat', '/mark')
    expect([changed.code, changed.out]).toEqual([0, 'first\n'])
    expect(changed.err).toContain('changed after you agreed to it')
  },
)
