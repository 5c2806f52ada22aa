/** When pen hangs, dies, or has no room for its audit or no descriptor left, the way out is closed, not open. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { WITHOUT_PACKET_FILTER } from '../../no-packet-filter.ts'
import { Stopwatch } from '../../stopwatch.ts'
import { until } from '../../until.ts'
import { runSteps } from './steps.ts'
import { supervisorOf } from './supervisor.ts'
import { forEachKind, inWorld, World } from './world.ts'
import { EVIL, UP } from './zones.ts'

/** Its processes are those whose working directory is its project. */
function alive(workspace: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(name => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(workspace)
      } catch {
        return false
      }
    })
    .map(Number)
}

const ASKING = `while :; do curl -s -m1 -o /dev/null -w '%{http_code}\\n' http://allowed.test/; curl -s -m1 -o /dev/null http://evil.test/; curl -s -m1 -o /dev/null http://${UP}:8080/; done`

forEachKind(
  'P17 while pen is stopped nothing leaves, and when it continues so does the sandbox',
  async (world, project) => {
    const running = project.start(`echo ${project.workspace} >/dev/null; ${ASKING}`, {
      allow: ['allowed.test:80'],
    })
    await until(() => running.text.out.includes('200'))
    const supervisor = supervisorOf(world, project.workspace)
    process.kill(supervisor, 'SIGSTOP')
    await Bun.sleep(300)
    const heard = world.listen()
    await Bun.sleep(1500)
    expect([heard.left, heard.names]).toEqual([[], []])
    const before = running.text.out.length
    process.kill(supervisor, 'SIGCONT')
    await until(() => running.text.out.slice(before).includes('200'))
    running.child.kill('SIGTERM')
    await running.ended
  },
  { containers: true },
)

forEachKind(
  'P17 when pen is killed nothing leaves, and the sandbox is gone within two seconds',
  async (world, project) => {
    const running = project.start(
      `trap '' HUP TERM INT; (setsid bash -c "exec -a ${project.workspace} sleep 60" &) ; ${ASKING}`,
      {
        allow: ['allowed.test:80'],
      },
    )
    await until(() => running.text.out.includes('200'))
    const supervisor = supervisorOf(world, project.workspace)
    process.kill(supervisor, 'SIGKILL')
    const watch = new Stopwatch()
    await Bun.sleep(50)
    const heard = world.listen()
    await until(() => alive(project.workspace).length === 0)
    expect(watch.ms).toBeLessThan(2000)
    await Bun.sleep(200)
    expect([heard.left, heard.names]).toEqual([[], []])
    await running.ended
  },
  { containers: true },
)

forEachKind('P17 when the gateway cannot start, nothing starts', async (world, project) => {
  const heard = world.listen()
  // No descriptors left for a door.
  const ran = await project.run('curl -s -m2 http://allowed.test/; echo ran', {
    allow: ['allowed.test:80'],
    wrap: ['prlimit', '--nofile=20:20'],
  })
  expect(ran.code).not.toBe(0)
  expect(ran.out).not.toContain('ran')
  expect(heard.left).toEqual([])
})

forEachKind(
  'P17 with few descriptors connections are rejected, and pen serves again afterwards',
  async (_world, project) => {
    const { steps } = await runSteps(
      project,
      {
        before: 'curl -s http://allowed.test/',
        flood: `/usr/bin/python3 -c "
import socket
held = []
for i in range(600):
    try: held.append(socket.create_connection(('allowed.test', 7), 2))
    except OSError: pass
alive = 0
for s in held:
    try: alive += s.recv(99) != b''
    except OSError: pass
print(alive)"`,
        after: 'curl -s --retry 5 --retry-delay 1 --retry-all-errors http://allowed.test/',
      },
      { allow: ['allowed.test:80', 'allowed.test:7'], wrap: ['prlimit', '--nofile=256:256'] },
    )
    expect(steps.before.said).toBe(`hello from ${UP} 80\n`)
    expect(steps.after.said).toBe(`hello from ${UP} 80\n`)
    const served = Number(steps.flood.said)
    expect(served).toBeGreaterThan(0)
    expect(served).toBeLessThan(256)
  },
  { users: 'ordinary' },
)

forEachKind(
  'P18 without room for a record there is no connection, and the run says why',
  async (world, project) => {
    const dir = `${project.stateDir}/audit`
    const [program = '', ...rest] = [
      ...world.on('host'),
      'sh',
      '-c',
      'mkdir -p "$1" && mount -t tmpfs -o size=32k,mode=0700,uid=$2 none "$1"',
      '-',
      dir,
      String(project.uid),
    ]
    expect(spawnSync(program, rest).status).toBe(0)
    project.ownState()
    const heard = world.listen()
    const { steps, err, code } = await runSteps(
      project,
      {
        before: 'curl -s http://allowed.test/',
        fill: `for i in $(seq 150); do curl -s -o /dev/null http://evil.test/; done`,
        after: `for i in $(seq 5); do curl -s -m2 http://allowed.test/; done; echo $?`,
      },
      { allow: ['allowed.test:80'] },
    )
    expect(steps.before.said).toBe(`hello from ${UP} 80\n`)
    expect(steps.after.said).not.toContain('hello from')
    expect(steps.after.ms).toBeLessThan(2000)
    expect(heard.left).toEqual([`tcp ${UP} 80`])
    expect(code).toBe(125)
    expect(err).toContain('could not write the audit')
    expect(err).toContain('free space on that file system; until then pen makes no connection')
  },
)

inWorld(
  'P20 where the kernel takes no rules, pen asks first, and then serves the allowed ports',
  async () => {
    const world = await World.get()
    using project = world.project({ name: 'root', user: 'root' })
    const heard = world.listen()
    const allow = ['allowed.test:80', 'allowed.test:8080', `${UP}:7`]
    const script = `curl -s http://allowed.test/; curl -s http://allowed.test:8080/; curl -s -o /dev/null -w '%{http_code}\\n' http://evil.test/
    curl -s -m2 http://evil.test:9999/; echo $?; dig +short +time=1 +tries=1 @${EVIL} x.evil.test; timeout 2 bash -c 'head -1 </dev/tcp/${UP}/7'`
    const refused = await project.run(script, { allow, wrap: WITHOUT_PACKET_FILTER })
    expect(refused.code).toBe(125)
    expect(refused.err).toContain('--accept-gap refusals-unrecorded')
    expect(refused.out).toBe('')
    const { out, audit } = await project.run(script, {
      allow,
      wrap: WITHOUT_PACKET_FILTER,
      flags: ['--accept-gap', 'refusals-unrecorded'],
    })
    expect(out).toContain(`hello from ${UP} 80\nhello from ${UP} 8080\n403\n7\n`)
    expect(out).toEndWith(`welcome to ${UP} 7\n`)
    expect(new Set(heard.left)).toEqual(new Set([`tcp ${UP} 80`, `tcp ${UP} 8080`, `tcp ${UP} 7`]))
    expect(audit.filter(({ kind }) => kind === 'connection-denied').length).toBe(1)
  },
)
