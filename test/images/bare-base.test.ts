/** The first build of a user whose base image is a plain Debian: no certificates, no curl, nothing but apt and its sources. */
import { expect } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inWorld, World } from '../conformance/network/world.ts'
import { makeBareBase } from '../engines/base-image.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['docker'])
const SOURCE = 'deb [trusted=yes] http://allowed.test/files/apt ./'
const PACKAGES = /^ARG PACKAGES="(.*)"$/m
  .exec(readFileSync(join(import.meta.dir, '../../image/Dockerfile'), 'utf8'))?.[1]
  ?.split(' ')

/** A repository with a package of each name that the default image asks for: real apt and dpkg install them. Made once. */
function makeAptRepository(dir: string): void {
  const place = join(dir, 'www/apt')
  if (existsSync(join(place, 'Packages'))) return
  mkdirSync(place, { recursive: true })
  const index = (PACKAGES ?? []).map(name => {
    const control = `Package: ${name}\nVersion: 99\nArchitecture: all\nMaintainer: a test <test@example.com>\nDescription: of a test\n`
    const tree = join(dir, 'debs', name)
    mkdirSync(join(tree, 'DEBIAN'), { recursive: true })
    mkdirSync(join(tree, 'usr/share/of-a-test'), { recursive: true })
    writeFileSync(join(tree, 'DEBIAN/control'), control)
    writeFileSync(join(tree, 'usr/share/of-a-test', name), '')
    const file = join(place, `${name}.deb`)
    const made = Bun.spawnSync(['dpkg-deb', '--root-owner-group', '--build', tree, file])
    if (made.exitCode !== 0) throw new Error(made.stderr.toString())
    const sum = createHash('sha256').update(readFileSync(file)).digest('hex')
    return `${control}Filename: ./${name}.deb\nSize: ${statSync(file).size}\nSHA256: ${sum}\n`
  })
  writeFileSync(join(place, 'Packages'), index.join('\n'))
}

inWorld(
  'there is a world with a repository to build from',
  async () => {
    makeAptRepository((await World.get()).dir)
    expect(statSync(makeBareBase(SOURCE)).size).toBeGreaterThan(50_000_000)
  },
  300_000,
)

onEachEngine(
  'the default image is built on a bare Debian, by its own sources and no rule of the user’s',
  async engine => {
    const world = await World.get()
    makeAptRepository(world.dir)
    using shop = new Workshop(engine, world.on('host'), world.pen)
    const base = `localhost/pen-test-bare:${crypto.randomUUID()}`
    expect(shop.ask('import', makeBareBase(SOURCE), base).code).toBe(0)
    try {
      shop.configure({ image: { args: { BASE: base } } })
      const heard = world.listen()
      const built = shop.build()
      expect([built.code, built.err]).toEqual([0, expect.stringContaining('PACKAGES')])
      const installed = shop.inside(built, 'ls /usr/share/of-a-test').trim().split('\n')
      expect(installed).toEqual([...(PACKAGES ?? [])].sort())
      expect(new Set(heard.names.map(name => name.split(' ')[0]))).toEqual(new Set(['allowed.test']))
      expect(shop.audit().filter(({ kind }) => kind === 'connection-denied')).toEqual([])
    } finally {
      shop.ask('rmi', '--force', base)
    }
  },
  120_000,
)
