/**
 * A Dockerfile of the project runs on this machine's engine, so nothing of it runs before a person has seen it
 * and agreed.
 */
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PEN } from '../conformance/launcher.ts'
import { Screen } from '../conformance/screen.ts'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

const dockerfile = (mark: string): string => `ARG PEN_BASE\nFROM \${PEN_BASE}\nRUN echo ${mark} >/tmp/mark\n`
const QUESTION = 'Type "yes" to confirm:'

onEachEngine('P16 a Dockerfile of the project is not built before its digest was agreed to', async engine => {
  using shop = new Workshop(engine)
  shop.dockerfile(dockerfile('first'))
  const refused = shop.build()
  expect([refused.code, refused.err]).toEqual([1, ''])
  expect(refused.out).toContain('+ RUN echo first')
  expect(refused.out).toContain('no terminal to ask on')
  const wrong = shop.build('--yes', '--expect', `sha256:${'0'.repeat(64)}`)
  expect([wrong.code, wrong.out]).toEqual([2, ''])
  expect(shop.build('--yes').code).toBe(2)
  expect(imagesOf(shop)).toEqual([])
  // The allowed twin.
  const built = shop.agreeAndBuild()
  expect([built.code, shop.inside(built, 'cat /tmp/mark')]).toEqual([0, 'first\n'])
  expect(imagesOf(shop).length).toBeGreaterThan(0)
  // After one agreement it builds again without a question.
  expect(shop.build('--quiet')).toEqual({ code: 0, out: built.out, err: '' })
})

onEachEngine('P16 a Dockerfile that changed is shown as a diff, and not built', async engine => {
  using shop = new Workshop(engine)
  shop.dockerfile(dockerfile('first'))
  const built = shop.agreeAndBuild()
  expect(built.code).toBe(0)
  shop.dockerfile(`${dockerfile('first')}RUN echo \x1b[2Kevil\u202e >/tmp/mark\n`)
  const changed = shop.build()
  expect([changed.code, changed.err]).toEqual([1, ''])
  expect(changed.out).toContain('has changed since you confirmed it')
  expect(changed.out).toContain('  RUN echo first')
  expect(changed.out).toContain('+ RUN echo \\u001b[2Kevil\\u202e')
  for (const raw of ['\u001b', '\u202e']) expect(changed.out).not.toContain(raw)
  expect(shop.build('--json').code).toBe(1)
  expect(shop.inside(built, 'cat /tmp/mark')).toBe('first\n')
})

onEachEngine(
  'P16 what is built is what was shown, also when the file changes while a person reads',
  async engine => {
    using shop = new Workshop(engine)
    shop.dockerfile(dockerfile('shown'))
    using screen = new Screen(
      shop.box,
      `${words(engine)} ${PEN} build --backend ${engine.backend}; echo "code $?"`,
    )
    await screen.shows('+ RUN echo shown')
    await screen.shows(QUESTION)
    // The agent changes it while the person reads.
    shop.dockerfile(dockerfile('evil'))
    screen.type('yes\r')
    await screen.shows('built: pen/', 50_000)
    await screen.shows('code 0')
    expect(readFileSync(join(shop.stateDir, 'agreed.dockerfile'), 'utf8')).toBe(dockerfile('shown'))
    const name = /built: (\S+)/.exec(screen.seen)?.[1] ?? ''
    expect(shop.inside({ code: 0, out: `built: ${name}\n`, err: '' }, 'cat /tmp/mark')).toBe('shown\n')
    using again = new Screen(
      shop.box,
      `${words(engine)} ${PEN} build --backend ${engine.backend}; echo "code $?"`,
    )
    await again.shows('+ RUN echo evil')
    await again.shows(QUESTION)
    again.type('no\r')
    await again.shows('not built')
    await again.shows('code 1')
  },
)

everyEngine(['podman'], { podman: 'in turn' })(
  'P16 a link in place of the Dockerfile is refused, and pen’s own can be named',
  async engine => {
    using shop = new Workshop(engine)
    shop.box.directory(join(shop.box.project, '.pen'))
    shop.box.host(`ln -s /etc/hostname .pen/Dockerfile`)
    const refused = shop.build()
    expect([refused.code, refused.out]).toEqual([2, ''])
    expect(refused.err).toContain('is a symbolic link')
    shop.configure({ image: { dockerfile: 'default' } })
    const built = shop.build('--quiet')
    expect([built.code, built.out]).toEqual([0, expect.stringMatching(/^built: pen\/default:/)])
  },
)

const words = ({ env }: TestEngine): string =>
  Object.entries(env)
    .map(([name, value]) => `${name}='${value}'`)
    .join(' ')

const imagesOf = (shop: Workshop): string[] =>
  shop
    .ask('images', '--quiet', '--filter', `label=pen.sandbox=${shop.stateDir.split('/').at(-1)}`)
    .out.trim()
    .split('\n')
    .filter(id => id !== '')
