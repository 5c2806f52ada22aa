/** The doctor and `pen run` agree when parts of the machine are removed, each in a mount namespace of the test. */
import { expect } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, lchownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WITHOUT_PACKET_FILTER } from '../no-packet-filter.ts'
import { Stopwatch } from '../stopwatch.ts'
import type { Box } from './box.ts'
import { onTheHost } from './conformance.ts'
import { agrees, doctor, failing, inPrivate, missing, pen, type Report } from './doctor.ts'
import { isRoot, PEN } from './launcher.ts'
import { copySeed } from './seed.ts'

const everything = (box: Box) => [...box.listing(), ...readdirSync(join(box.home, '.pen')).sort()]
/** Cgroups that a dead doctor left, anywhere. Their name begins with its pid; a live doctor still has its own. */
const cgroups = () =>
  spawnSync('find', ['/sys/fs/cgroup', '-maxdepth', '6', '-type', 'd', '-name', 'pen-*-doctor'], {
    encoding: 'utf8',
  })
    .stdout.split('\n')
    .filter(path => path !== '' && !existsSync(`/proc/${/pen-(\d+)-/.exec(path)?.[1]}`))
const asUser = { only: () => isRoot, users: 'ordinary' } as const
const asRoot = { only: () => isRoot }

onTheHost('P20 the doctor says that pen run works where it does, and leaves nothing behind', async box => {
  const before = everything(box)
  const asked = agrees(box, '', { engines: 'as they are' })
  expect([asked.code, failing(asked)]).toEqual([0, []])
  for (const id of [
    'kernel',
    'user-namespaces',
    'bubblewrap',
    'network',
    'run',
    'seccomp',
    'privileges',
    'state',
  ])
    expect([id, asked.of(id)?.status]).toEqual([id, 'ok'])
  for (const finding of asked.report.findings)
    expect(Object.keys(finding)).toEqual(['id', 'status', 'what', 'why', 'fix'])
  expect(Object.keys(asked.report)).toEqual(['version', 'pen', 'system', 'works', 'ok', 'findings'])
  expect(new Set(asked.report.findings.map(({ id }) => id)).size).toBe(asked.report.findings.length)
  expect(everything(box)).toEqual([...before.filter(name => name !== 'sandboxes'), 'sandboxes'])
})

onTheHost('P4 on a machine that never ran pen, the doctor leaves not even a directory', async box => {
  const home = box.directory(join(box.root, 'fresh'))
  const project = box.directory(join(home, 'project'))
  const { status } = pen(box, ['doctor'], `export HOME=${home}`, {
    cwd: project,
    engines: 'as they are',
  })
  expect([status, readdirSync(home), readdirSync(project), cgroups()]).toEqual([0, ['project'], [], []])
})

onTheHost(
  'P20 the doctor names what is missing with the command that installs it, and pen run fails too',
  async box => {
    const nsenter = agrees(box, missing('/usr/bin/nsenter'))
    expect([nsenter.code, nsenter.of('tool-nsenter')?.status, nsenter.of('network')?.status]).toEqual([
      1,
      'fails',
      'fails',
    ])
    expect(nsenter.of('tool-nsenter')?.fix).toContain('util-linux')
    const bwrap = agrees(box, missing('/usr/bin/bwrap'))
    expect([bwrap.code, bwrap.of('bubblewrap')?.status]).toEqual([1, 'fails'])
    expect(bwrap.of('bubblewrap')?.fix).toMatch(/(apt-get install|dnf install|pacman -S|apk add) bubblewrap/)
    // Only one check needs it. The others still report.
    expect([bwrap.of('network')?.status, bwrap.of('user-namespaces')?.status]).toEqual(['ok', 'ok'])
    const git = agrees(box, missing('/usr/bin/git'))
    expect([git.code, git.of('tool-git')?.status]).toEqual([0, 'weak'])
  },
  asRoot,
)

onTheHost(
  'P20 where the kernel takes no packet filter rules, the doctor says so, and pen run stops',
  async box => {
    const filter = join(box.root, 'filter.py')
    writeFileSync(filter, WITHOUT_PACKET_FILTER.at(-1) ?? '')
    const asked = agrees(box, `set -- /usr/bin/python3 ${filter} "$@"`)
    expect([asked.code, asked.of('network')?.status]).toEqual([1, 'fails'])
    expect(asked.of('network')?.fix).toContain('--accept-gap refusals-unrecorded')
  },
  asRoot,
)

onTheHost(
  'P20 where no user namespace can be made the doctor says why, and how to allow them',
  async box => {
    const script = `mkfifo ../go
      unshare -U sh -c 'read x <../go; exec "$@"' sh \
        sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"' sh "$@" &
      until [ "$(readlink /proc/$!/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
      for map in uid_map gid_map; do echo 0 0 4294967295 > /proc/$!/$map; done
      echo > ../go; wait $!`
    const words = [...box.launcher.who.become, PEN, 'doctor', '--json']
    const [program, ...rest] = inPrivate(box, ['sh', '-c', script, 'sh', ...words])
    const { status, stdout } = spawnSync(program, rest, {
      cwd: box.project,
      env: box.env(),
      encoding: 'utf8',
      timeout: 60_000,
    })
    const { findings, works } = JSON.parse(stdout) as Report
    const found = findings.find(({ id }) => id === 'user-namespaces')
    expect([status, works, found?.status]).toEqual([1, false, 'fails'])
    expect([found?.why, found?.fix?.includes('user.max_user_namespaces=15000')]).toEqual([
      'user.max_user_namespaces is 0',
      true,
    ])
  },
  asRoot,
)

onTheHost(
  'P20 the doctor reports a root that cannot change its user',
  async box => {
    const words = ['setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin', PEN, 'doctor', '--json']
    const [program, ...rest] = inPrivate(box, words)
    const { status, stdout } = spawnSync(program, rest, {
      cwd: box.project,
      env: box.env(),
      encoding: 'utf8',
    })
    const { findings } = JSON.parse(stdout) as Report
    expect([status, findings.find(({ id }) => id === 'id-mapped-mounts')?.status]).toEqual([1, 'fails'])
  },
  { only: ({ who }) => isRoot && who.uid === 0 },
)

onTheHost(
  'P20 any part of the state that cannot be written fails, and a writable one does not',
  async box => {
    const state = join(box.home, '.pen')
    const cases = [
      'chmod 500 .pen',
      'rm -rf .pen; touch .pen',
      'touch .pen/sandboxes',
      'rm -rf .pen/cache; touch .pen/cache',
      'mkdir -p .pen/sandboxes; chmod 500 .pen/sandboxes',
      'rm -rf .pen; ln -s /nonexistent/x .pen',
    ]
    for (const change of cases) {
      box.host(`cd ..; ${change}`)
      const asked = agrees(box, '')
      expect([change, asked.code, failing(asked)]).toEqual([change, 1, expect.arrayContaining(['state'])])
      box.host('cd ..; find .pen -type d -exec chmod u+rwx {} + || true; rm -rf .pen; mkdir -m 700 .pen')
      copySeed(box.launcher, state)
    }
    expect(agrees(box, '').of('state')?.status).toBe('ok')
    for (const [mode, code, status] of [
      [0o770, 0, 'weak'],
      [0o777, 1, 'fails'],
    ] as const) {
      chmodSync(state, mode)
      const open = agrees(box, '')
      expect([open.code, open.of('state')?.status, open.of('state')?.fix]).toEqual([
        code,
        status,
        `chmod go-w ${state}`,
      ])
    }
  },
  { only: ({ who }) => who.uid !== 0, timeout: 60_000 },
)

onTheHost(
  'P20 a full disk and a noexec project are weak: reported, and failures with --strict',
  async box => {
    const change = `mount -t tmpfs -o size=8m,mode=777,noexec none ${box.project}; chown ${box.launcher.who.uid} ${box.project}; cd ${box.project}`
    const asked = doctor(box, change)
    expect([asked.code, asked.of('project')?.status]).toEqual([0, 'weak'])
    expect(asked.of('project')?.why).toMatch(/noexec.*little space/)
    expect(doctor(box, change, ['--strict']).code).toBe(1)
  },
  asUser,
)

onTheHost(
  'P20 a policy that this machine cannot keep fails in its own project only',
  async box => {
    expect(pen(box, ['config', 'set', 'network.mode', 'bridge']).status).toBe(0)
    const asked = agrees(box, '')
    expect([asked.code, asked.of('policy')?.status, asked.of('run')?.status]).toEqual([1, 'fails', 'ok'])
    expect(asked.of('policy')?.fix).toContain('--accept-gap no-bridge')
    const other = box.directory(join(box.home, 'other'))
    expect(doctor(box, '', [], { cwd: other }).of('policy')?.status).toBe('ok')
    // The home is no project, and the machine is examined anyway.
    const home = doctor(box, '', [], { cwd: box.home })
    expect([home.of('project')?.status, home.of('run')?.status]).toEqual(['weak', 'ok'])
  },
  { users: 'ordinary' },
)

onTheHost(
  'P4 a doctor that is killed leaves nothing either',
  async box => {
    const left = () => readdirSync(join(box.home, '.pen')).filter(name => name.startsWith('.pen-'))
    // Without a pause: the moment when only its directory exists.
    const atOnce = async () => {
      for (const late = performance.now() + 10_000; left().length === 0 && performance.now() < late; );
    }
    for (const [signal, moment] of [
      ['SIGKILL', atOnce],
      ['SIGKILL', () => Bun.sleep(200)],
      ['SIGINT', () => Bun.sleep(150)],
    ] as const) {
      const [program, ...rest] = inPrivate(box, [...box.launcher.who.become, PEN, 'doctor'])
      const child = spawn(program, rest, { cwd: box.project, env: box.env(), stdio: 'ignore' })
      const ended = new Promise(resolve => child.once('exit', resolve))
      await moment()
      child.kill(signal)
      await ended
      for (const watch = new Stopwatch(); left().length > 0 && watch.ms < 2000; ) await Bun.sleep(20)
      expect([signal, left()]).toEqual([signal, []])
      // The next command removes a left cgroup at the latest.
      pen(box, ['run', '--offline', '--', 'true'])
      expect(cgroups()).toEqual([])
    }
  },
  { users: 'ordinary' },
)

onTheHost(
  'P20 the doctor shows hostile names escaped, and is refused inside a sandbox',
  async box => {
    const cwd = join(box.home, 'a\u001b[2Jb')
    mkdirSync(cwd)
    lchownSync(cwd, box.launcher.who.uid, box.launcher.who.gid)
    writeFileSync(join(cwd, 'x'), '')
    const { stdout, status } = pen(box, ['doctor'], '', { cwd })
    expect([status, stdout.includes('\u001b'), stdout.includes('a\\u001b[2Jb')]).toEqual([0, false, true])
    const [program = '', ...rest] = [...box.launcher.who.become, PEN, 'doctor']
    const inside = spawnSync(program, rest, { cwd: box.project, env: box.env({ AGENT_IN_SANDBOX: '1' }) })
    expect(inside.status).toBe(125)
  },
  { users: 'ordinary' },
)
