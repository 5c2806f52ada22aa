/** Images take half a gigabyte each: `pen gc` removes those that no sandbox uses any more. */
import { expect } from 'bun:test'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import { BASE_NAME } from '../engines/test-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

onEachEngine(
  'P4 a rebuild leaves no unnamed image, and pen gc no unused one; images of others stay',
  async engine => {
    using shop = new Workshop(engine)
    // podman fails while a test beside this one removes an image that it lists.
    const nameless = () => {
      for (let tries = 1; ; tries++) {
        const { code, out } = shop.ask('images', '--quiet', '--no-trunc', '--filter', 'dangling=true')
        if (code === 0 || tries === 20) return out.split('\n').filter(Boolean)
      }
    }
    const mark = crypto.randomUUID()
    shop.dockerfile(`FROM ${BASE_NAME}\nRUN date +%N >/when; true ${mark}\n`)
    // Another user's image, without pen's label.
    shop.box.file('theirs/Dockerfile', `FROM ${BASE_NAME}\nLABEL theirs=${mark}\n`)
    expect(shop.ask('build', '--quiet', join(shop.box.project, 'theirs')).code).toBe(0)
    const theirs = shop.ask('images', '--quiet', '--no-trunc', '--filter', `label=theirs=${mark}`).out.trim()
    const before = nameless()
    expect(before).toContain(theirs)
    const first = shop.agreeAndBuild('--quiet')
    const image = /^built: (\S+)$/m.exec(first.out)?.[1] ?? ''
    const full = engine.backend === 'podman' ? `localhost/${image}` : image
    const id = (name: string) => shop.ask('image', 'inspect', '--format', '{{.Id}}', name).out.trim()
    const old = id(full)
    expect(shop.build('--quiet', '--no-cache')).toMatchObject({ code: 0 })
    expect([id(full) === old, shop.ask('image', 'inspect', old).code === 0]).toEqual([false, false])
    expect(nameless().toSorted()).toEqual(before.toSorted())
    // An image that a container uses stays until that is gone.
    const used = id(full)
    const container = shop.ask('create', '--network=none', used, 'true').out.trim()
    expect(shop.build('--quiet', '--no-cache')).toMatchObject({ code: 0 })
    expect(shop.ask('image', 'inspect', used).code).toBe(0)
    shop.ask('rm', container)
    expect(shop.pen('gc', '--json').out).toContain(used.replace('sha256:', ''))
    expect(nameless().toSorted()).toEqual(before.toSorted())
    shop.ask('rmi', theirs)
  },
)

onEachEngine(
  'P4 pen gc removes a project’s older images, and after pen rm its last; those in use stay',
  async engine => {
    using shop = new Workshop(engine)
    using other = new Workshop(engine)
    const built = (by: Workshop, text: string): string => {
      by.dockerfile(`FROM ${BASE_NAME}\nLABEL text=${text}\n`)
      const said = by.agreeAndBuild('--quiet')
      const name = /^built: (\S+)$/m.exec(said.out)?.[1]
      if (name === undefined) throw new Error(`nothing was built: ${said.code} ${said.out}${said.err}`)
      return name
    }
    const isThere = (name: string): boolean => {
      const full = engine.backend === 'podman' ? `localhost/${name}` : name
      return shop.ask('image', 'inspect', full).code === 0
    }
    const ofProject = (said: string): string[] =>
      (JSON.parse(said) as { leftovers: { kind: string; name: string }[] }).leftovers.flatMap(
        ({ kind, name }) => (kind === 'image' && /^pen\/(?!default:)/.test(name) ? [name] : []),
      )
    const first = built(shop, 'first')
    const second = built(shop, 'second')
    const others = built(other, 'third')
    expect(ofProject(shop.pen('gc', '--dry-run', '--json').out)).toEqual([first])
    expect([first, second, others].map(isThere)).toEqual([true, true, true])
    expect(ofProject(shop.pen('gc', '--json').out)).toEqual([first])
    expect([first, second, others].map(isThere)).toEqual([false, true, true])
    expect(shop.pen('rm', '--yes').code).toBe(0)
    expect(ofProject(shop.pen('gc', '--json').out)).toEqual([second])
    expect([second, others].map(isThere)).toEqual([false, true])
  },
)
