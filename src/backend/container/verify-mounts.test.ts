/** Uses a real mount namespace of the test: the engine may have mounted something else than pen asked for. */
import { afterAll, describe, expect } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../../test/skip.ts'
import { NamespaceMounts } from '../mounts/live-mounts.ts'
import type { PlanMounts } from './plan-mounts.ts'
import { mountPoints, verifyMounts } from './verify-mounts.ts'

const asRoot = onlyWhen(process.platform === 'linux' && process.getuid?.() === 0)
const dir = mkdtempSync(join(tmpdir(), 'pen-in-place-'))
const children: Bun.Subprocess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

for (const name of ['meant/.env', 'meant/hooks/h', 'meant/sub/f', 'other/f']) {
  mkdirSync(join(dir, name, '..'), { recursive: true })
  writeFileSync(join(dir, name), name)
}
for (const name of ['at', 'own']) mkdirSync(join(dir, name))
writeFileSync(join(dir, 'nothing'), '', { mode: 0o000 })
symlinkSync('meant', join(dir, 'link'))

const NONE: PlanMounts = {
  scratch: [],
  binds: [],
  layered: [],
  merged: undefined,
  holds: [],
  files: [],
  userDirectories: [],
}
const NO_TREES = { binds: undefined, layered: [] }
const at = join(dir, 'at')
const meant = join(dir, 'meant')
const OWN = { from: join(dir, 'own'), at: join(dir, 'own') }

/** A process that sees `shown` at `at`, as in a container. */
async function inside(shown: string): Promise<{ readonly pid: number; readonly mounts: NamespaceMounts }> {
  const script = 'mount --bind "$1" "$2" && mount --bind "$3" "$3" && echo up && exec sleep 30'
  const child = Bun.spawn(['unshare', '--mount', 'sh', '-c', script, 'sh', shown, at, OWN.at], {
    stdout: 'pipe',
  })
  children.push(child)
  await child.stdout.getReader().read()
  const mounts = new NamespaceMounts(() => child.pid, { emptyFile: join(dir, 'nothing'), ids: 'many' })
  return { pid: child.pid, mounts }
}

async function put(shown: string, from: string, more: Partial<PlanMounts> = {}) {
  const { pid, mounts } = await inside(shown)
  const binds = [{ from, at, mode: 'rw' as const }]
  const user = { uid: 1000, gid: 1000 }
  await verifyMounts({
    init: pid,
    mounts,
    plan: { ...NONE, binds, ...more },
    own: OWN,
    user,
    trees: NO_TREES,
  })
  return `/proc/${pid}/root${at}`
}

describe('what an engine mounted', () => {
  asRoot('is what the host has at that path, or nothing runs', async () => {
    expect(existsSync(await put(meant, meant))).toBe(true)
    await expect(put(join(dir, 'other'), meant)).rejects.toThrow('is not what the host has there')
  })

  asRoot('is refused when the host’s path has a link, although it leads to the same directory', async () => {
    await expect(put(meant, join(dir, 'link'))).rejects.toThrow('is not what the host has there')
  })

  asRoot('is refused when it was not mounted at all', async () => {
    const { pid, mounts } = await inside(meant)
    const binds = [{ from: join(dir, 'other'), at: join(dir, 'other'), mode: 'rw' as const }]
    const user = { uid: 1000, gid: 1000 }
    const placed = verifyMounts({
      init: pid,
      mounts,
      plan: { ...NONE, binds },
      own: OWN,
      user,
      trees: NO_TREES,
    })
    await expect(placed).rejects.toThrow('is not what the host has there')
  })

  asRoot('is refused when the image has a link in place of pen’s own directory', async () => {
    const { pid, mounts } = await inside(meant)
    const led = { from: OWN.from, at: join(dir, 'link/sub') }
    const placed = verifyMounts({
      init: pid,
      mounts,
      plan: NONE,
      own: led,
      user: { uid: 1000, gid: 1000 },
      trees: NO_TREES,
    })
    await expect(placed).rejects.toThrow('the image has a link in the path')
  })

  asRoot('ignores setuid bits, and holds denied, protected and pinned places', async () => {
    const hold = (how: 'cover' | 'protect' | 'pin', name: string) =>
      ({ how, at: join(at, name), from: join(meant, name) }) as const
    const root = await put(meant, meant, {
      holds: [hold('cover', '.env'), hold('protect', 'hooks'), hold('pin', 'sub')],
    })
    const pid = Number(root.split('/')[2])
    expect(readFileSync(join(root, '.env'), 'utf8')).toBe('')
    expect(() => writeFileSync(join(root, 'hooks/h'), 'x')).toThrow('EROFS')
    writeFileSync(join(root, 'sub/f'), 'written')
    expect(mountPoints(pid).filter(path => path.startsWith(at))).toEqual([
      at,
      join(at, '.env'),
      join(at, 'hooks'),
      join(at, 'sub'),
    ])
    const flags = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
      .split('\n')
      .find(line => line.split(' ')[4] === at)
    expect(flags).toContain('nosuid,nodev')
  })
})
