/** A guest whose root comes from an image: it has the image's programs and none of the host's. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Box } from '../conformance/box.ts'
import { EVERYBODY, launcherOf, onMachines } from '../conformance/launcher.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import { removeImages } from '../engines/test-engine.ts'
import { ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { skipUnless } from '../skip.ts'
import { onMachine } from '../vm/machine.ts'

const who = EVERYBODY.at(-1)
const missing = who === undefined ? 'no user' : podmanMissing(who)
const CONFIG = { version: 1, profile: 'coding', isolation: 'vm', image: { dockerfile: 'Dockerfile' } }
const MAKE_ROOT = `mkdir -p root/bin root/etc root/home
cp "$HOME/.pen/cache/vm/busybox" root/bin/busybox
for name in sh ls cat id; do ln -s busybox root/bin/$name; done
printf '#!/bin/sh\\necho from the image\\n' >root/bin/only-in-image
chmod 755 root/bin/*
echo of the image >root/etc/image-file`

skipUnless(missing === undefined, missing ?? '')(
  'podman is here for virtual machines with an image',
  () => undefined,
)

onMachine(
  'P1 with an image the guest has its programs and files, and none of the host’s, also as root',
  async () => {
    if (who === undefined || missing !== undefined) return
    const engine = podmanOf(who)
    const here = new ProjectSandbox(new Box(launcherOf(onMachines(who))), engine.env)
    const { box } = here
    try {
      here.configure(JSON.stringify(CONFIG))
      box.host(MAKE_ROOT)
      box.file('Dockerfile', 'FROM scratch\nCOPY root/ /\nENV PATH=/bin\n')
      const shown = await here.pen('build')
      const digest = /^sha256:[0-9a-f]{64}$/m.exec(shown.stdout)?.[0] ?? ''
      expect((await here.pen('build', '--yes', '--expect', digest)).code).toBe(0)
      const run = (script: string) =>
        here.start(['run', '--', 'sh', '-c', script], { timeoutMs: 100_000 }).ended
      const ran = await run(
        'only-in-image; cat /etc/image-file; id -un; ls /bin; echo x >/bin/new; echo x >/etc/new; echo new >written',
      )
      expect(ran.stdout.split('\n')).toEqual([
        'from the image',
        'of the image',
        'agent',
        ...['busybox', 'cat', 'id', 'ls', 'only-in-image', 'sh'],
        '',
      ])
      expect(readFileSync(join(box.project, 'written'), 'utf8')).toBe('new\n')
      const [tree = ''] = readdirSync(join(box.home, '.pen/cache/images')).filter(name =>
        name.endsWith('.tree'),
      )
      expect(existsSync(join(box.home, '.pen/cache/images', tree, 'bin/new'))).toBe(false)
      here.configure(JSON.stringify({ ...CONFIG, vm: { root: true } }))
      expect(
        (await run('id -u; echo echo changed >/bin/new; sh /bin/new; ls /var/lib')).stdout.split('\n'),
      ).toEqual([...['0', 'changed', 'containers', 'docker', '']])
      expect(existsSync(join(box.home, '.pen/cache/images', tree, 'bin/new'))).toBe(false)
      here.configure(JSON.stringify({ ...CONFIG, tools: { shell: false } }))
      const refused = await here.start(['run', '--', 'only-in-image'], { timeoutMs: 100_000 }).ended
      expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('cannot hide programs')])
    } finally {
      removeImages(engine, box.project)
      box.remove()
    }
  },
  240_000,
)
