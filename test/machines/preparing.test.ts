/** The first start takes a kernel from packages. Without a network it says what to do, and starts nothing. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Box } from '../conformance/box.ts'
import { EVERYBODY, launcherOf, onMachines, PEN } from '../conformance/launcher.ts'
import { onMachine } from '../vm/machine.ts'

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
      expect(stderr).toContain('fix: with a network connection, run: pen build --isolation vm')
      expect(readdirSync(join(home, '.pen/cache')).filter(name => name.includes('vm'))).toEqual([])
    }),
  120_000,
)

onMachine(
  'P20 pen build takes the machine’s files from another machine’s, and refuses damaged ones',
  () =>
    inBox(async box => {
      const from = join(box.root, 'copied')
      cpSync(join(box.home, '.pen/cache/vm'), from, { recursive: true })
      const build = (home: string) => {
        const env = box.env({ HOME: box.directory(join(box.root, home)) })
        const argv = [PEN, 'build', '--isolation', 'vm', '--vm-files', from]
        return spawnSync(argv[0] ?? '', argv.slice(1), { cwd: box.project, env, encoding: 'utf8' })
      }
      expect(build('first')).toMatchObject({ status: 0, stdout: expect.stringContaining('prepared: ') })
      expect(existsSync(join(box.root, 'first/.pen/cache/vm/vmlinuz'))).toBe(true)
      appendFileSync(join(from, 'vmlinuz'), 'x')
      const { status, stderr } = build('second')
      expect([status, stderr]).toEqual([125, expect.stringContaining('damaged, or of another version')])
      expect(readdirSync(join(box.root, 'second/.pen/cache')).filter(name => name.includes('vm'))).toEqual([])
    }),
  60_000,
)

onMachine(
  'P20 pen doctor names what a machine lacks, and --fix runs only what the user confirms',
  () =>
    inBox(async box => {
      const home = box.directory(join(box.root, 'unprepared'))
      const doctor = (line: string, answer: string) => {
        const env = box.env({ HOME: home })
        return spawnSync('/bin/sh', ['-c', line], { cwd: box.project, env, encoding: 'utf8', input: answer })
      }
      expect(doctor(`${PEN} doctor --fix`, 'yes\n')).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('asks before it changes anything'),
      })
      const alone = isRoot ? 'unshare --net' : 'unshare --map-current-user --net'
      const onTerminal = `${alone} script -qec '${PEN} doctor --fix' /dev/null`
      const refused = doctor(onTerminal, 'no\n'.repeat(9)).stdout
      expect(refused).toMatch(/vm-files: isolation "vm" is not set up.*\s+fix: pen build --isolation vm/)
      expect(refused).not.toContain('preparing the kernel')
      expect(doctor(onTerminal, 'yes\n'.repeat(9)).stdout).toContain('apt could not fetch')
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

onMachine(
  'P20 starts that find no usable kernel at the same time all work, and none removes another’s files',
  () =>
    inBox(async box => {
      const cache = join(box.home, '.pen/cache/vm')
      // The seed has hard links to the same file.
      box.host(`cp ${cache}/vmlinuz ${cache}/copy && mv ${cache}/copy ${cache}/vmlinuz`)
      appendFileSync(join(cache, 'vmlinuz'), 'changed')
      const starts = [1, 2, 3].map(async i => {
        await Bun.sleep(i * 300)
        const cwd = box.directory(join(box.home, `project-${i}`))
        return await box.sh('echo works', { cwd, timeoutMs: 100_000 })
      })
      const seen = new Set<number>()
      const timer = setInterval(() => seen.add(statSync(cache, { throwIfNoEntry: false })?.ino ?? 0), 2)
      const ran = await Promise.all(starts).finally(() => clearInterval(timer))
      expect(ran.map(({ code, stdout }) => [code, stdout])).toEqual(starts.map(() => [0, 'works\n']))
      seen.delete(0)
      // The changed one, and one that stays.
      expect(seen.size).toBe(2)
      expect(readdirSync(join(cache, '..')).filter(name => name.startsWith('.vm-'))).toEqual([])
    }),
  240_000,
)
