/** The first start takes a kernel from packages. Without a network it says what to do, and starts nothing. */
import { expect } from 'bun:test'
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Box } from '../conformance/box.ts'
import { EVERYBODY, launcherOf, onMachines } from '../conformance/launcher.ts'
import { onMachine } from './machine.ts'

const [root] = EVERYBODY
const isRoot = root?.uid === 0

async function inBox(body: (box: Box) => Promise<void>): Promise<void> {
  if (root === undefined) return
  const box = new Box(launcherOf(onMachines(root)))
  try {
    await body(box)
  } finally {
    box.remove()
  }
}

onMachine(
  'P20 a machine without a network and without a kernel gets the command that fetches one',
  () =>
    inBox(async box => {
      const home = box.directory(join(box.root, 'fresh'))
      const alone = isRoot ? 'unshare --net "$@"' : 'unshare --map-current-user --net "$@"'
      const { code, stderr } = await box.sh('touch ran', {
        env: { HOME: home },
        through: alone,
        timeoutMs: 90_000,
      })
      expect([code, existsSync(join(box.project, 'ran'))]).toEqual([125, false])
      expect(stderr).toMatch(/BACKEND: apt could not fetch .* for the virtual machine/)
      expect(stderr).toContain('fix: with a network connection, run: pen run --isolation vm -- true')
      expect(readdirSync(join(home, '.pen/cache')).filter(name => name.includes('vm'))).toEqual([])
    }),
  120_000,
)

onMachine('P20 a memory limit that is too small for a guest is refused with the smallest one', () =>
  inBox(async box => {
    const { code, stderr } = await box.sh('touch ran', { flags: ['--limit', 'memory=512MiB'] })
    expect([code, existsSync(join(box.project, 'ran'))]).toEqual([125, false])
    expect(stderr).toContain('fix: raise it: --limit memory=640MiB')
  }),
)

onMachine(
  'P13 P14 a wall time that ends while the guest boots ends the run with 124',
  () =>
    inBox(async box => {
      const { code, stderr } = await box.sh('touch ran', { flags: ['--wall', '1s'] })
      expect([code, existsSync(join(box.project, 'ran'))]).toEqual([124, false])
      expect(stderr).toContain('limits.wall is 1 s')
    }),
  120_000,
)

onMachine(
  'P20 a kernel that was changed in the cache is not started, but prepared again',
  () =>
    inBox(async box => {
      const cache = join(box.home, '.pen/cache/vm')
      const before = readFileSync(join(cache, 'vmlinuz'))
      // The seed has hard links to the same file.
      box.host(`cp ${cache}/vmlinuz ${cache}/copy && mv ${cache}/copy ${cache}/vmlinuz`)
      appendFileSync(join(cache, 'vmlinuz'), 'changed')
      const { code, stdout, stderr } = await box.sh('echo works', { timeoutMs: 100_000 })
      expect([code, stdout]).toEqual([0, 'works\n'])
      expect(stderr).toContain('preparing the kernel of the virtual machine')
      expect(readFileSync(join(cache, 'vmlinuz')).equals(before)).toBe(true)
    }),
  120_000,
)
