/**
 * The same promises on gVisor: its own kernel inside, files opened by its gofer, sockets of the container's
 * namespace. Judged by the host's state and by what the outside received. Runs as root on podman; elsewhere pen
 * refuses, which is tested too.
 */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { EVERYBODY } from '../conformance/launcher.ts'
import { isReady, World } from '../conformance/network/world.ts'
import { UP } from '../conformance/network/zones.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import { Workshop } from '../images/workshop.ts'
import { skipUnless } from '../skip.ts'
import { within } from '../until.ts'
import { ContainerProject, isGone, printed } from './sandbox.ts'

const GVISOR = ['--isolation', 'gvisor'] as const
const root = EVERYBODY.find(({ uid }) => uid === 0)
const ordinary = EVERYBODY.find(({ uid }) => uid !== 0)
const hasRunsc = spawnSync('sh', ['-c', 'command -v runsc']).status === 0
const missing =
  root === undefined ? 'only root can' : hasRunsc ? podmanMissing(root) : 'runsc is not installed'
const onGvisor = skipUnless(missing === undefined, `gVisor: ${missing}`)

function makeProject(): ContainerProject {
  if (root === undefined) throw new Error('only root can')
  return new ContainerProject(podmanOf(root))
}

/** Host processes whose /proc file of this name contains this. */
const processesWith = (file: 'cgroup' | 'cmdline', text: string): number[] =>
  readdirSync('/proc')
    .filter(pid => /^\d+$/.test(pid))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(text)
      } catch {
        return false
      }
    })
    .map(Number)

const nameOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0] ?? ''

onGvisor(
  'P7 a sandbox without network has its own loopback for its own servers',
  async () => {
    using project = makeProject()
    const { out } = project.sh(
      `python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 5000)); socket.create_connection(("127.0.0.1", 5000)); print("reached")'; python3 -c 'import socket; socket.create_connection(("192.0.2.1", 5000), 5)' 2>&1`,
      ...GVISOR,
    )
    expect(out).toMatch(/^reached\n/)
    expect(out).toContain('Network is unreachable')
  },
  60_000,
)

onGvisor(
  'P23 with --review the project stays as it is, and the next run goes on where this one ended',
  async () => {
    using project = makeProject()
    project.box.file('old', 'old')
    expect(project.sh('echo new >> old; mkdir dir; mv old dir/moved', ...GVISOR, '--review').code).toBe(0)
    expect(readdirSync(project.box.project)).toEqual(['old'])
    expect(readFileSync(join(project.box.project, 'old'), 'utf8')).toBe('old')
    expect(project.sh('cat dir/moved; cat old || true', ...GVISOR, '--review').out).toBe('oldnew\n')
  },
  60_000,
)

onGvisor(
  'P12 programs see gVisor’s kernel, without capabilities, and pen’s filter holds in it',
  async () => {
    using project = makeProject()
    const { out, code } = project.sh(
      'cat /proc/version; grep -E "^(Cap|Seccomp:)" /proc/self/status; unshare --user true || echo refused; touch /x /usr/x; id -u; exit 7',
      ...GVISOR,
    )
    const lines = out.trim().split('\n')
    expect(code).toBe(7)
    expect(lines[0]).toStartWith('Linux version ')
    expect(lines[0]).not.toBe(readFileSync('/proc/version', 'utf8').trim())
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd'])
      expect(lines).toContain(`${set}:\t0000000000000000`)
    expect(lines).toContain('Seccomp:\t2')
    expect(lines).toContain('refused')
    expect(Number(lines.at(-1))).toBeGreaterThan(0)
  },
  60_000,
)

onGvisor(
  'P3 denied, protected and pinned places are held; P2 P5 neighbours are writable by their owner',
  async () => {
    using project = makeProject()
    const { box } = project
    box.file('.env', 'SECRET')
    box.file('.vscode/tasks.json', 'old')
    box.file(join(box.home, 'private'), 'PRIVATE')
    // Only its owner may enter it, and the exec daemon must too.
    chmodSync(box.project, 0o700)
    const { out } = project.sh(
      'cat .env ../private; echo new > .vscode/tasks.json; mv .vscode v; rm -rf .vscode; rm -f .env; mv .env e; echo fine > beside; mkdir -p a/b; echo made > a/b/c; cat .vscode/tasks.json a/b/c; echo kept > ~/.cache/kept; cat ~/.cache/kept',
      ...GVISOR,
    )
    expect(out).toBe('oldmade\nkept\n')
    const read = (path: string) => readFileSync(join(box.project, path), 'utf8')
    expect([read('.env'), read('.vscode/tasks.json'), read('beside'), read('a/b/c')]).toEqual([
      'SECRET',
      'old',
      'fine\n',
      'made\n',
    ])
    for (const made of ['a', 'a/b', 'a/b/c', 'beside'])
      expect([lstatSync(join(box.project, made)).uid, lstatSync(join(box.project, made)).gid]).toEqual([0, 0])
  },
  60_000,
)

onGvisor(
  'P3 a denied file that the host makes or replaces during a run cannot be read; others can',
  async () => {
    using project = makeProject()
    const { project: at } = project.box
    project.box.file('.env', 'FIRST')
    const child = project.start(
      'echo begun; until [ -e go ]; do sleep 0.05; done; cat .env sub/.env.local .env.local; cat plain; echo over; sleep 30',
      ...GVISOR,
      '--deny',
      'sub',
    )
    await printed(child, 'begun')
    writeFileSync(join(at, 'other'), 'SECOND')
    renameSync(join(at, 'other'), join(at, '.env'))
    mkdirSync(join(at, 'sub'))
    writeFileSync(join(at, 'sub/.env.local'), 'THIRD')
    writeFileSync(join(at, '.env.local'), 'FOURTH')
    writeFileSync(join(at, 'plain'), 'PLAIN\n')
    const held = () => project.audit().filter(({ kind }) => kind === 'place-held').length
    expect(await within(5000, () => held() >= 3)).toBe(true)
    writeFileSync(join(at, 'go'), '')
    expect(await printed(child, 'over')).toBe('PLAIN\nover\n')
    child.kill('SIGTERM')
    for (const path of ['.env', 'sub', '.env.local', 'plain', 'go'])
      rmSync(join(at, path), { recursive: true })
  },
  60_000,
)

/** Opens a protected file for writing again and again, and reports when that works and when it stops. */
const OPENING = `
import os, time
print('begun', flush=True)
wrote, end = False, time.time() + 20
while time.time() < end:
  try:
    os.close(os.open('.npmrc', os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    if not wrote: print('opened', flush=True)
    wrote = True
  except OSError:
    if wrote: break
print('refused' if wrote and time.time() < end else 'open', flush=True)
`

onGvisor(
  'P3 a protected file that the host replaces is protected again, also from earlier openers',
  async () => {
    using project = makeProject()
    const { box } = project
    const config = box.file('.npmrc', 'a=b\n')
    box.file('opening.py', OPENING)
    const child = project.start('exec python3 opening.py', ...GVISOR)
    let seen = ''
    child.stdout?.on('data', (data: Buffer) => {
      seen += data.toString()
    })
    await printed(child, 'begun')
    // Repeats until the sandbox was once faster than pen.
    for (let n = 0; n < 40 && !seen.includes('opened'); n += 1) {
      writeFileSync(`${config}.new`, `n=${n}\n`)
      renameSync(`${config}.new`, config)
      await Bun.sleep(150)
    }
    expect(await within(10_000, () => /refused|open$/m.test(seen.replace('opened', '')))).toBe(true)
    expect(seen).toBe('begun\nopened\nrefused\n')
  },
  60_000,
)

onGvisor(
  'P14 a sandbox ends with pen, however pen ends: no process, mount or container is left',
  async () => {
    using project = makeProject()
    for (const [signal, script] of [
      ['SIGTERM', '(setsid sleep 300 &); echo begun; sleep 300'],
      ['SIGKILL', 'trap "" TERM HUP INT; (setsid sleep 300 &); echo begun; sleep 300'],
    ] as const) {
      const child = project.start(script, ...GVISOR)
      await printed(child, 'begun')
      const [name = ''] = project.containers()
      const id = project.ask('container', 'inspect', '--format', '{{.Id}}', name).out.trim()
      const processes = processesWith('cgroup', id)
      expect(processes.map(nameOf)).toEqual(expect.arrayContaining(['runsc-sandbox', 'runsc-gofer']))
      child.kill(signal)
      expect(await within(2000, () => processes.every(isGone))).toBe(true)
      expect(await within(5000, () => project.containers().length === 0)).toBe(true)
    }
  },
  60_000,
)

onGvisor(
  'P4 a pen that is killed while its container is being made leaves none',
  async () => {
    using project = makeProject()
    const makers = () => processesWith('cmdline', `${project.stateDir}/containers`)
    for (const ms of [0, 60, 120, 180, 240]) {
      const child = project.start('sleep 300', ...GVISOR)
      expect(await within(8000, () => makers().length > 0)).toBe(true)
      await Bun.sleep(ms)
      child.kill('SIGKILL')
      expect(await within(8000, () => makers().length === 0)).toBe(true)
      expect(await within(5000, () => project.containers().length === 0)).toBe(true)
    }
  },
  60_000,
)

onGvisor(
  'P13 memory and processes are limited: the last process fits, the next is refused and reported',
  async () => {
    using project = makeProject()
    const memory = (mib: number) => `python3 -c "x = bytearray(${mib} << 20); print(len(x) >> 20)"`
    const over = project.sh(memory(600), ...GVISOR, '--limit', 'memory=256MiB')
    expect([over.code === 0, over.out]).toEqual([false, ''])
    expect(project.sh(memory(8), ...GVISOR, '--limit', 'memory=256MiB').out).toBe('8\n')
    // Counts the started processes until the kernel refuses. python itself is one of them.
    project.box.file(
      'fork.py',
      `import os, time
n = 1
try:
  while n < 300:
    if os.fork() == 0: time.sleep(5); os._exit(0)
    n += 1
except BlockingIOError: pass
# gVisor counts no refusals: the exec daemon looks now and then whether the limit is reached.
time.sleep(3)
print(n, flush=True)
`,
    )
    const fork = project.sh('exec python3 fork.py', ...GVISOR, '--limit', 'pids=30')
    expect(fork.code).toBe(0)
    // Threads that the exec daemon starts later take a few places.
    expect(Number(fork.out)).toBeWithin(25, 31)
    expect(fork.err).toContain('limits.pids (30) was reached')
    const fitting = 'for i in $(seq 25); do sleep 1 & done; wait; echo all'
    const within = project.sh(fitting, ...GVISOR, '--limit', 'pids=30')
    expect([within.out, within.err.includes('was reached')]).toEqual(['all\n', false])
    // Nothing inside can leave or raise the limit.
    const leave =
      'echo $$ > /run/pen.processes/cgroup.procs; umount /run/pen.processes; ls /run/pen.processes'
    expect(project.sh(leave, ...GVISOR).err.match(/denied|not permitted|cannot/gi)?.length).toBeGreaterThan(2)
  },
  60_000,
)

onGvisor(
  'P12 only listed programs exist, without a shell if the policy has none; P20 "listed" is a gap',
  async () => {
    using project = makeProject()
    const run = (tools: object, ...command: string[]) => {
      project.box.file('agent-permissions.json', JSON.stringify({ version: 1, tools }))
      return project.pen('run', '--backend', 'podman', '--offline', ...GVISOR, '--', ...command)
    }
    const list = 'import os; print(sorted(os.listdir("/usr/bin") + os.listdir("/usr/sbin")))'
    const { out } = run({ allow: ['python3', 'cat'] }, 'python3', '-c', list)
    expect(out).toMatch(/^\['cat', 'python3', 'python3\.\d+'\]\n$/)
    expect(
      run({ shell: false }, 'cat', '/bin/sh', '/usr/bin/bash').err.match(/Permission denied/g),
    ).toHaveLength(2)
    expect(run({ shell: false }, 'cat', '/etc/hostname').code).toBe(0)
    expect(run({ exec: 'listed' }, 'true').err).toContain('--accept-gap exec-unlisted')
  },
  60_000,
)

const onNetwork = skipUnless(missing === undefined && isReady, `gVisor and a network: ${missing}`)

onNetwork(
  'P6 every program reaches an allowed name, P7 and nothing else leaves by TCP, UDP, ICMP or DNS',
  async () => {
    if (root === undefined) return
    const engine = podmanOf(root)
    const world = await World.get()
    using project = world.project({ name: 'root', user: 'root' })
    const built = project.command(['build', '--backend', 'podman', '--offline'], engine.env)
    expect(built.status).toBe(0)
    const heard = world.listen()
    const script = `curl -s -m8 http://allowed.test/; curl -s -m8 -x $PEN_PROXY http://allowed.test/
      python3 -c "import urllib.request as u; u.getproxies = dict; print(u.urlopen('http://allowed.test/', timeout=8).read().decode(), end='')"
      for url in http://evil.test/ http://${UP}:8080/ http://192.0.2.1:8098/ http://127.0.0.1:8098/; do curl -s -o /dev/null -m4 -w '%{http_code}\\n' $url; done
      python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('${UP}', 53)); s.sendto(b'x', ('${UP}', 443))
for kind in (socket.SOCK_RAW,):
  try: socket.socket(socket.AF_INET, kind, 1); print('raw')
  except OSError: print('no raw')
try: socket.getaddrinfo('secret.evil.test', 80); print('resolved')
except OSError: print('no name')
"`
    const { out, audit } = await project.run(script, {
      allow: ['allowed.test:80'],
      flags: [...GVISOR],
      env: engine.env,
    })
    const lines = out.trim().split('\n')
    expect(lines.filter(line => line === `hello from ${UP} 80`)).toHaveLength(3)
    expect(lines.slice(3, 7).filter(code => /^2/.test(code))).toEqual([])
    expect(lines.slice(7)).toEqual(['no raw', expect.stringMatching(/no name|resolved/)])
    expect(new Set(heard.left)).toEqual(new Set([`tcp ${UP} 80`]))
    expect([heard.loopback, heard.hostRequests]).toEqual([[], []])
    expect(heard.names.some(name => JSON.stringify(name).includes('evil'))).toBe(false)
    expect(audit.some(({ kind, name }) => kind === 'connection-denied' && name === 'evil.test')).toBe(true)
  },
  60_000,
)

const asOther = skipUnless(missing === undefined && ordinary !== undefined, 'there is no ordinary user')

asOther(
  'P20 without root, and on Docker, gVisor is refused with its reason, and nothing weaker runs',
  async () => {
    if (ordinary === undefined || root === undefined) return
    using theirs = new Workshop(podmanOf(ordinary))
    const without = theirs.pen('run', ...GVISOR, '--offline', '--', 'echo', 'ran')
    expect([without.code, without.out]).toEqual([125, ''])
    expect(without.err).toContain('only with podman that root runs')
    using ours = new Workshop(podmanOf(root))
    const docker = ours.pen('run', '--backend', 'docker', ...GVISOR, '--offline', '--', 'echo', 'ran')
    expect([docker.code, docker.out]).toEqual([125, ''])
    expect(docker.err).toContain('does not give isolation "gvisor"')
  },
  60_000,
)
