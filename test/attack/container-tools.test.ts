/**
 * Hostile images against a policy that restricts tools: programs with other names, and links to other
 * directories.
 */
import { expect } from 'bun:test'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { tinyImage } from '../images/tiny.ts'
import { type Said, Workshop } from '../images/workshop.ts'

/** Engines that map the owners of an image's files one by one, and engines that do not. */
const onPodman = everyEngine(['podman'])

/** A directory of programs that is a link, a shell with other names, and a program that acts by its name. */
const ODD = [
  'mkdir -p /r/weird /r/game /r/usr/local/bin',
  'cp /r/bin/seq /r/usr/local/bin/local',
  'cp /r/bin/seq /r/weird/count',
  'cp /r/bin/cat /r/weird/show',
  'rm -rf /r/sbin',
  'ln -s ../weird /r/sbin',
  'ln /r/bin/bash /r/bin/innocent',
  'cp /r/bin/bash /r/bin/busybox',
  'ln -s busybox /r/bin/applet',
  'ln /r/bin/busybox /r/bin/another',
  `ln -s /bin/sleep "/r/bin/new
line"`,
]

class UnsupportedImage extends Workshop {
  constructor(engine: TestEngine) {
    super(engine)
    this.dockerfile(tinyImage(ODD.join(' && ').replace('\n', '\\\n'), 'ENV PATH=/bin:/sbin:/game'))
    const built = this.agreeAndBuild('--offline')
    if (built.code !== 0) throw new Error(`${built.code} ${built.out}${built.err}`)
  }

  run(tools: object, ...command: string[]): Said {
    this.box.file('agent-permissions.json', JSON.stringify({ version: 1, tools }))
    return this.pen('run', '--backend', this.engine.backend, '--offline', '--', ...command)
  }
}

const SHELLS = ['sh', 'bash', 'innocent', 'busybox', 'applet', 'another'].map(name => `/bin/${name}`)
/** A readable program could be copied, and the copy run. */
const COUNT = ['grep', '-c', '', ...SHELLS, '/weird/count']
const SCRIPT = `echo /bin/* /usr/local/bin/*; show /dev/null && echo shown; /weird/count 1; /sbin/count 1; /bin/seq 1; count 1
for loader in /lib64/ld-*; do "$loader" ./copy 1; done; ./copy 1; echo over`

onPodman(
  'P12 a list holds in an image whose program directory is a link, and no renamed shell is left',
  async engine => {
    using image = new UnsupportedImage(engine)
    image.box.file('copy', '', 0o755)
    Bun.spawnSync(['cp', '/usr/bin/seq', join(image.box.project, 'copy')])

    const { out, err } = image.run({ shell: false }, ...COUNT)
    expect(out).toMatch(/^\/weird\/count:\d+\n$/)
    expect(SHELLS.filter(name => !err.includes(`${name}: Permission denied`))).toEqual([])
    const listed = image.run({ shell: false, allow: ['innocent', 'seq'] }, 'innocent', '-c', 'echo ran')
    expect([listed.code, listed.out]).toEqual([127, ''])
    image.box.file('agent-permissions.json', JSON.stringify({ version: 1, tools: { shell: false } }))
    const nothing = image.pen('run', '--backend', engine.backend, '--offline')
    expect([nothing.code, nothing.err.includes('has none (tools.shell is false)')]).toEqual([127, true])

    // Mounts of the policy stay, even where programs were. A copied program runs, unless only listed ones may.
    image.configure({ mounts: [{ volume: 'more', at: '/usr/local/bin/more' }] })
    const allow = ['sh', 'show']
    const some = image.run({ allow }, 'sh', '-c', SCRIPT)
    expect(some.out).toBe('/bin/sh /usr/local/bin/more\nshown\n1\n1\nover\n')
    expect(image.run({ allow, exec: 'listed' }, 'sh', '-c', SCRIPT).out).toBe(
      '/bin/sh /usr/local/bin/more\nshown\nover\n',
    )

    const all = image.run({}, 'innocent', '-c', `${COUNT.join(' ').replace('-c  ', "-c '' ")}; ${SCRIPT}`)
    expect(all.out.match(/^\S+:\d+$/gm)).toHaveLength(SHELLS.length + 1)
    expect(all.out).toEndWith('shown\n1\n1\n1\n1\n1\n1\nover\n')
  },
)
