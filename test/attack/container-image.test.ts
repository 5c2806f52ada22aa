/** Hostile images against the host that starts them: an engine's mounts follow links of the image. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { tinyImage } from '../images/tiny.ts'
import { Workshop } from '../images/workshop.ts'

const onEachEngine = everyEngine()

/**
 * Every path that could be taken for the exec daemon, its loader or the engine's init, as a link into the
 * project.
 */
const DECOYS = ['pen/loader', 'pen/pen', 'loader', 'podman-init', 'docker-init', 'catatonit', 'init']

function workshop(engine: TestEngine, link: string): Workshop {
  const shop = new Workshop(engine)
  for (const name of DECOYS) shop.box.file(name, `#!/bin/sh\necho ran > ${shop.box.project}/ran\n`, 0o755)
  const { project } = shop.box
  shop.dockerfile(tinyImage(`mkdir -p /r${project} && ln -s ${project} /r${link}`))
  const built = shop.agreeAndBuild('--offline')
  if (built.code !== 0) throw new Error(`${built.code} ${built.out}${built.err}`)
  return shop
}

const run = (shop: Workshop, script: string) =>
  shop.pen('run', '--backend', shop.engine.backend, '--offline', '--', '/bin/sh', '-c', script)

onEachEngine(
  'P12 P5 an image whose /run links into the project starts nothing of it, and is refused',
  async engine => {
    using shop = workshop(engine, '/run')
    const said = run(shop, 'echo inside')
    expect(said.out).toBe('')
    expect(said.code).not.toBe(0)
    expect(existsSync(join(shop.box.project, 'ran'))).toBe(false)
  },
)

onEachEngine(
  'P12 P5 an image whose /sbin links into the project starts nothing of it, and works',
  async engine => {
    using shop = workshop(engine, '/sbin')
    expect(run(shop, 'echo inside; exit 3')).toMatchObject({ code: 3, out: 'inside\n' })
    expect(existsSync(join(shop.box.project, 'ran'))).toBe(false)
  },
)

onEachEngine(
  'P4 volumes in the project create no directory there, and volumes of an image are removed',
  async engine => {
    using shop = new Workshop(engine)
    const { project } = shop.box
    const volumes = () => shop.ask('volume', 'ls', '--quiet').out.split('\n').filter(Boolean)
    const before = new Set(volumes())
    const attempt = (...paths: string[]) => {
      shop.dockerfile(tinyImage('mkdir /r/data', `VOLUME ${paths.join(' ')}`))
      expect(shop.agreeAndBuild('--offline')).toMatchObject({ code: 0 })
      return run(shop, 'echo inside')
    }
    // podman has an option to create none.
    const both = attempt(`${project}/new`, '/data')
    const last = engine.backend === 'docker' ? attempt('/data') : both
    if (last !== both) expect(both.err).toContain('declares a volume inside a directory of the host')
    expect(last).toMatchObject({ code: 0, out: 'inside\n' })
    expect(readdirSync(project)).toEqual(['.pen'])
    expect(volumes().filter(name => !before.has(name))).toEqual([])
    // Nor do the user's own volumes: their mount point must exist.
    const mount = (name: string) => {
      shop.configure({ mounts: [{ volume: 'parts', at: `${project}/${name}` }] })
      return run(shop, `echo kept > ${name}/file && echo done`)
    }
    expect(mount('parts').err).toContain(`cannot mount at ${project}/parts`)
    expect(readdirSync(project)).toEqual(['.pen'])
    symlinkSync('new/place', join(project, 'parts'))
    expect(mount('parts').err).toContain(`cannot mount at ${project}/parts`)
    expect(readdirSync(project).sort()).toEqual(['.pen', 'parts'])
    rmSync(join(project, 'parts'))
    shop.box.directory(join(project, 'parts'))
    expect(mount('parts')).toMatchObject({ code: 0, out: 'done\n' })
    expect(readdirSync(join(project, 'parts'))).toEqual([])
    expect(readdirSync(join(shop.stateDir, 'volumes/parts'))).toEqual(['file'])
  },
)
