import { expect } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, rmdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, quote } from './box.ts'
import { conformance } from './conformance.ts'
import { isRoot } from './launcher.ts'
import { pen } from './pen-command.ts'

/** The command leaves a mark: without the mark it did not run, whatever pen prints. */
const MARK = 'echo ran > mark'
const ran = (box: Box, cwd = box.project) => existsSync(join(cwd, 'mark'))

/** pen in a mount namespace of the test, with something of the machine removed. */
const without = (box: Box, change: string) => {
  const { uid, gid, become } = box.launcher.who
  const again = become.length === 0 && uid === 0 ? '' : `setpriv --reuid=${uid} --regid=${gid} --clear-groups`
  return `exec unshare -m sh -c ${quote(`${change}; exec ${again} "$@"`)} sh "$@"`
}
const onlyRootLauncher = { only: ({ who }: { who: { uid: number } }) => isRoot && who.uid === 0 }

conformance(
  'P20 without bubblewrap nothing runs, and pen says what to install; PATH does not matter',
  async box => {
    box.file('node_modules/.bin/bwrap', '#!/bin/sh\necho ran > mark\n', 0o755)
    const missing = await box.sh(MARK, {
      through: without(
        box,
        'mount --bind /dev/null "$(readlink -f /usr/bin/bwrap)"; mount --bind /dev/null /usr/bin/bwrap',
      ),
      env: { PATH: `${box.project}/node_modules/.bin:/usr/bin:/bin` },
    })
    expect([missing.code, ran(box)]).toEqual([125, false])
    expect(missing.stderr).toContain('MISSING_TOOL: bwrap is not installed')
    expect(missing.stderr).toContain('apt-get install bubblewrap')
    expect((await box.sh(MARK, { env: { PATH: `${box.project}/node_modules/.bin` } })).code).toBe(0)
    expect(ran(box)).toBe(true)
  },
  { ...onlyRootLauncher, needs: 'bubblewrap' },
)

conformance(
  'P20 root that cannot change its user runs nothing',
  async box => {
    for (const through of [
      'exec unshare -Ur "$@"',
      'exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@"',
    ]) {
      const refused = await box.sh(MARK, { through })
      expect([through, refused.code, ran(box)]).toEqual([through, 125, false])
      expect(refused.stderr).toContain('fix: run pen as an ordinary user')
    }
  },
  onlyRootLauncher,
)

conformance(
  'P20 where user namespaces are blocked nothing runs, and pen says how to allow them',
  async box => {
    // A namespace that maps every id to itself, so that only the limit differs.
    const blocked = await box.sh(MARK, {
      through: `mkfifo ../go
        unshare -U sh -c 'read x <../go; exec "$@"' sh \
          sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"' sh "$@" &
        until [ "$(readlink /proc/$!/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
        for map in uid_map gid_map; do echo 0 0 4294967295 > /proc/$!/$map; done
        echo > ../go; wait $!`,
    })
    expect([blocked.code, ran(box)]).toEqual([125, false])
    expect(blocked.stderr).toContain('user namespaces are blocked here')
    expect(blocked.stderr).toMatch(/apparmor_restrict_unprivileged_userns=0|unprivileged_userns_clone=1/)
  },
  { ...onlyRootLauncher, needs: 'ownUserNamespace' },
)

conformance(
  'P20 an impossible request stops before anything runs, with a fix',
  async box => {
    const cases: readonly (readonly [number, readonly string[]])[] = [
      [2, ['--backend', 'apple']],
      [2, ['--read', '/']],
      [2, ['--write', box.home]],
      [2, ['--write', '/proc']],
      [2, ['--read', '~root/x']],
      [2, ['--limit', 'memory=4G']],
      [2, ['--wall', '0s']],
      [2, ['--env', '=x']],
      [2, ['--no-such-flag']],
      [2, ['--profile', 'loose']],
      [2, ['--deny', 'a/**/secret']],
    ]
    for (const [code, flags] of cases) {
      const { code: actual, stderr } = await box.sh(MARK, { flags })
      expect([flags, actual, ran(box)]).toEqual([flags, code, false])
      expect([flags, /^ {2}fix: \S/m.test(stderr)]).toEqual([flags, true])
    }
    expect((await box.sh(MARK, { flags: ['--deny', '**/secret'] })).code).toBe(0)
    expect(ran(box)).toBe(true)
  },
  { once: 'it stops before there is a backend' },
)

conformance(
  'P20 a gap stops the run until it is accepted by name',
  async box => {
    expect((await pen(box, 'config', 'set', 'network.mode', 'bridge')).code).toBe(0)
    const start = (...flags: string[]) =>
      pen(box, 'run', '--isolation', 'process', ...flags, '--', 'sh', '-c', MARK)
    const { code, stderr } = await start()
    expect([code, ran(box)]).toEqual([125, false])
    expect(stderr).toMatch(/^ {2}fix: \S/m)
    expect((await start('--accept-gap', 'no-bridge')).code).toBe(0)
    expect(ran(box)).toBe(true)
  },
  { once: 'it stops before there is a backend' },
)

conformance('P20 an unusable home stops the run with the reason; a good one does not', async box => {
  const locked = box.directory(join(box.root, 'locked'))
  const file = box.file(join(box.root, 'file'), '')
  chmodSync(locked, 0o555)
  for (const HOME of [
    'relative',
    './x',
    '',
    '/nonexistent/home',
    file,
    `${box.root}/new\nline`,
    ...(isRoot && box.launcher.who.uid === 0 ? [] : [locked]),
  ]) {
    const { code, stderr } = await box.sh(MARK, { env: { HOME } })
    expect([HOME, code, ran(box)]).toEqual([HOME, 125, false])
    expect([HOME, /fix: /.test(stderr)]).toEqual([HOME, true])
  }
  const deep = box.directory(join(box.root, 'd'.repeat(120)))
  expect((await box.sh(MARK, { env: { HOME: deep, XDG_RUNTIME_DIR: `/${'x'.repeat(150)}` } })).code).toBe(0)
})

conformance('P20 without HOME pen uses the account’s home', async box => {
  const { code } = await box.sh(MARK, { env: { HOME: undefined } })
  expect([code, ran(box)]).toEqual([0, true])
})

const NAMES = [
  'with space',
  'ünï–日本',
  '-dash',
  'quo\'te"s',
  '$(echo x)`y`',
  'back\\slash',
  '[WIP]*?',
  'a:b,c=d',
  'new\nline',
  'x'.repeat(200),
  '%s',
  '.hidden',
  '~',
]

conformance('P20 every project name works literally', async box => {
  // A container takes a second: there, one path has all names.
  for (const name of box.launcher.isolation === 'process' ? NAMES : [NAMES.join('/')]) {
    const cwd = box.directory(join(box.home, 'names', name))
    const { code, stdout, stderr } = await box.sh(`${MARK}; pwd`, { cwd })
    expect([name, code, code === 0 ? '' : stderr]).toEqual([name, 0, ''])
    expect([stdout, ran(box, cwd)]).toEqual([`${cwd}\n`, true])
  }
})

conformance('P20 the real directory decides, not PWD: through a link, from below, or deleted', async box => {
  symlinkSync(box.project, join(box.home, 'link'))
  const linked = await box.sh('pwd -P; echo x > by-link', {
    cwd: join(box.home, 'link'),
    env: { PWD: '/etc' },
  })
  expect(linked.stdout).toBe(`${box.project}\n`)
  expect(existsSync(join(box.project, 'by-link'))).toBe(true)
  const gone = join(box.home, 'gone')
  mkdirSync(gone)
  const { code, stderr } = await box.sh(MARK, {
    through: `cd ${quote(gone)} && rmdir ${quote(gone)} && exec "$@"`,
  })
  expect([code, ran(box)]).toEqual([1, false])
  expect(stderr).toContain('directory was deleted')
  if (existsSync(gone)) rmdirSync(gone)
})

conformance(
  'P20 a project that is read-only can be read',
  async box => {
    box.file('source', 'S')
    chmodSync(box.project, 0o555)
    expect((await box.sh('cat source; echo x > new')).stdout).toBe('S')
    chmodSync(box.project, 0o755)
    expect((await box.sh('cat source; echo x > new; cat new')).stdout).toBe('Sx\n')
  },
  { only: ({ who }) => who.uid !== 0 },
)

conformance(
  'P20 a project on another file system works, and not as root',
  async box => {
    const memory = without(
      box,
      `mount -t tmpfs -o mode=777 none ${quote(box.project)}; cd ${quote(box.project)}; chown ${box.launcher.who.uid} .`,
    )
    const { stdout, stderr } = await box.sh('echo x > new && cat new && id -u', { through: memory })
    expect([stdout, stdout === '' ? stderr : '']).toEqual([expect.stringMatching(/^x\n[1-9]\d*\n$/), ''])
  },
  { ...onlyRootLauncher, needs: 'callersMounts' },
)

conformance(
  'P20 pen inside pen is refused',
  async box => {
    const { code, stderr } = await box.sh(MARK, { env: { AGENT_IN_SANDBOX: '1' } })
    expect([code, ran(box)]).toEqual([125, false])
    expect(stderr).toContain('INSIDE_SANDBOX')
  },
  { once: 'it stops before there is a backend' },
)
