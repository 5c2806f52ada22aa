import { expect } from 'bun:test'
import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'
import { mounting } from './mounting.ts'

conformance(
  'P2 a planted link does not redirect a mount in the project, and nothing is left on the host',
  async box => {
    const victim = box.directory(join(box.home, 'victim'))
    const given = box.file(join(box.home, 'given/file'), 'given\n')
    const link = join(box.project, 'vendor')
    const tried = async (at: string) => {
      mounting(box, { host: given, at: join(box.project, at, 'file'), mode: 'ro' })
      return await box.sh(`cat ${at}/file`)
    }
    // As bubblewrap sees the host while it builds the sandbox: as every user, and from its directory.
    for (const to of [`/oldroot${victim}`, victim, '../victim', `../../../../../../../oldroot${victim}`]) {
      symlinkSync(to, link)
      const { code, stdout, stderr } = await tried('vendor')
      expect([to, code, stdout]).toEqual([to, 2, ''])
      expect(stderr).toContain('its path contains a link')
      rmSync(link)
    }
    expect((await tried('absent')).stderr).toContain('it does not exist')
    expect([readdirSync(victim), readdirSync(box.project)]).toEqual([[], []])

    box.file('vendor/file', 'old\n')
    expect((await tried('vendor')).stdout).toBe('given\n')
    expect(readFileSync(join(link, 'file'), 'utf8')).toBe('old\n')
  },
)

conformance('P2 nor by a link in a volume that an earlier run planted there', async box => {
  const victim = box.directory(join(box.home, 'victim'))
  const given = box.file(join(box.home, 'given/file'), 'given\n')
  const volume = { volume: 'kept', at: '/home/agent/kept' }
  mounting(box, volume)
  const planted = await box.sh(
    `cd ~/kept && mkdir -p real && touch real/file && ln -s /oldroot${victim} way && ls`,
  )
  expect(planted.stdout).toBe('real\nway\n')
  mounting(box, volume, { host: given, at: '/home/agent/kept/way/file', mode: 'ro' })
  expect((await box.sh('cat ~/kept/way/file')).stderr).toContain('its path contains a link')
  expect(readdirSync(victim)).toEqual([])
  mounting(box, volume, { host: given, at: '/home/agent/kept/real/file', mode: 'ro' })
  expect((await box.sh('cat ~/kept/real/file')).stdout).toBe('given\n')
})
