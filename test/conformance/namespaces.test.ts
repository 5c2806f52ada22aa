import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { conformance, onTheHost } from './conformance.ts'

/**
 * Objects without a path: a System V segment, a semaphore set, a message queue and a POSIX one, by key and
 * name.
 */
const IPC = (make: boolean) => `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); rt = ctypes.CDLL('librt.so.1', use_errno=True)
flags = 0o${make ? '1666' : '666'}
key = int(sys.argv[1])
found = [name for name, id in (('shm', libc.shmget(key, 4096, flags)), ('sem', libc.semget(key, 1, flags)), ('msg', libc.msgget(key, flags)),
  ('mq', rt.mq_open(b'/pen-%d' % key, os.O_RDWR | ${make ? 'os.O_CREAT' : 0}, 0o666, None))) if id >= 0]
print(' '.join(found))`

conformance(
  'P1 shared memory, semaphores and queues of the host are hidden, and the sandbox has its own',
  async box => {
    const key = String(0x70_00_00_00 + Math.floor(Math.random() * 0xffffff))
    const made = spawnSync('/usr/bin/python3', ['-c', IPC(true), key], { encoding: 'utf8' })
    expect(made.stdout).toContain('shm sem msg')
    try {
      const inside = await box.run(['/usr/bin/python3', '-c', IPC(false), key])
      expect([inside.code, inside.stdout]).toEqual([0, '\n'])
      const own = await box.sh(
        `python3 -c "$MAKE" ${key}; python3 -c "$SEE" ${key}; wc -l < /proc/sysvipc/shm`,
        {
          flags: ['--env', 'MAKE', '--env', 'SEE'],
          env: { MAKE: IPC(true), SEE: IPC(false) },
        },
      )
      expect(own.stdout).toMatch(/^shm sem msg( mq)?\nshm sem msg( mq)?\n2\n$/)
    } finally {
      spawnSync('ipcrm', ['-M', key, '-S', key, '-Q', key])
      spawnSync('/usr/bin/python3', [
        '-c',
        `import ctypes; ctypes.CDLL('librt.so.1').mq_unlink(b'/pen-${key}')`,
      ])
    }
  },
)

conformance(
  'P1 every kind of namespace is the sandbox’s own, and the host name reveals nothing',
  async box => {
    const { stdout } = await box.sh(
      'for n in cgroup ipc mnt net pid uts; do readlink /proc/self/ns/$n; done; hostname; cat /proc/self/cgroup | head -c 4096',
    )
    const lines = stdout.split('\n')
    for (const kind of ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'uts']) {
      const line = lines.find(text => text.startsWith(`${kind}:`))
      expect([
        kind,
        line === spawnSync('readlink', [`/proc/self/ns/${kind}`], { encoding: 'utf8' }).stdout.trim(),
      ]).toEqual([kind, false])
    }
    expect(lines[6]).toBe('pen')
    // The sandbox sees its own cgroup as the root, and not its place on the host.
    for (const line of lines.slice(7).filter(text => text !== '')) expect(line).not.toContain('/pen-')
  },
  { needs: 'hostKernel' },
)

conformance(
  'P12 the user namespace is the sandbox’s own',
  async box => {
    const { stdout } = await box.sh('readlink /proc/self/ns/user')
    expect(stdout).toMatch(/^user:\[\d+\]\n$/)
    expect(stdout.trim()).not.toBe(readlinkSync('/proc/self/ns/user'))
  },
  { needs: 'ownUserNamespace' },
)

onTheHost(
  'P20 in another sandbox where root owns nothing, pen says that instead of asking to install',
  async box => {
    const around = await box.sh('echo ran', {
      through: 'bwrap --unshare-user --dev-bind / / -- "$@"',
    })
    expect([around.code, around.stdout]).toEqual([125, ''])
    expect(around.stderr).toMatch(
      /MISSING_TOOL: .*user namespace without root.*\n.*\n +fix: start pen outside/,
    )
  },
  { only: ({ who }) => who.uid !== 0 },
)

conformance('P20 every flag of pen run takes effect, and a dry run runs nothing', async box => {
  const granted = box.file(join(box.home, 'granted/file'), 'GRANTED')
  const writable = box.directory(join(box.home, 'writable'))
  box.file('hidden', 'HIDDEN')
  box.file('secret.key', 'SECRET')
  const flags = [
    ...[
      '--isolation',
      box.launcher.isolation,
      '--profile',
      'coding',
      '--read',
      granted,
      '--write',
      writable,
      '--deny',
      'hidden',
      '--deny',
      '*.key',
    ],
    ...['--env', 'SET=value', '--limit', 'files=77', '--wall', '20s'],
  ]
  const command = `cat ${granted}; echo w > ${writable}/w; cat hidden secret.key; echo $SET; ulimit -n; echo ran > ran`
  const { code, stdout } = await box.sh(command, { flags })
  expect([code, stdout]).toEqual([0, 'GRANTEDvalue\n77\n'])
  expect([readFileSync(join(writable, 'w'), 'utf8'), existsSync(join(box.project, 'ran'))]).toEqual([
    'w\n',
    true,
  ])
  box.host('rm ran')
  const dry = await box.sh(command, { flags: [...flags, '--dry-run-policy'] })
  expect([dry.code, existsSync(join(box.project, 'ran'))]).toEqual([0, false])
  for (const said of [
    granted,
    writable,
    'hidden',
    '*.key',
    'files 77',
    'wall 20s',
    `plan for backend ${box.launcher.backend}, isolation ${box.launcher.isolation}`,
  ])
    expect([said, dry.stdout.includes(said)]).toEqual([said, true])
})
