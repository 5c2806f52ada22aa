/**
 * The exec daemon of a container against the commands that it starts. It is root there with few capabilities.
 * The container here is a pid namespace with the capabilities that an engine leaves.
 */
import { afterAll, beforeAll, expect } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seccompFilter } from '../../src/backend/seccomp/filter.ts'
import type { DaemonSetup } from '../../src/protocol/exec-order.ts'
import {
  BINARY,
  orderOf,
  proportionalSize,
  type RunningDaemon,
  SETUP,
  startDaemon,
} from '../exec-daemon/exec-daemon.ts'
import { onlyWhen } from '../skip.ts'
import { Stopwatch } from '../stopwatch.ts'
import { until } from '../until.ts'

const asRoot = onlyWhen(process.platform === 'linux' && process.getuid?.() === 0)
const USER = { uid: 4321, gid: 4321 }
const GIVEN = 'setuid,+setgid,+kill,+chown,+setpcap'
const MIB = 2 ** 20

/** Like an engine's init: it has one child, reaps orphans, and ends when that child ends. */
const INIT = 'setpriv --bounding-set=-all,+$0 --no-new-privs "$@" & exec 3>&-; wait $!'
const CONTAINER = [
  'unshare',
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
  '--',
  'sh',
  '-c',
  INIT,
  GIVEN,
]

let daemon: RunningDaemon
let place: string
let home: string

beforeAll(async () => {
  if (process.getuid?.() !== 0) return
  place = mkdtempSync(join(tmpdir(), 'pen-daemon-'))
  chmodSync(place, 0o755)
  home = join(place, 'home')
  mkdirSync(home, { mode: 0o700 })
  const setup: DaemonSetup = {
    ...SETUP,
    user: USER,
    userDirectories: [home],
    seccomp: seccompFilter({ exec: 'any' }),
    emptyBounding: true,
  }
  daemon = startDaemon(setup, [...CONTAINER, BINARY])
  await daemon.link.ready
})
afterAll(async () => {
  await daemon?.end()
  if (place !== undefined) rmSync(place, { recursive: true })
})

const lines = (text: string): string[] => text.trimEnd().split(/\r?\n/)

/** The daemon's pid on the host: the pen process below the init. */
function daemonPid(): number {
  const children = (pid: number): number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean).map(Number)
  const all = children(daemon.child.pid).flatMap(pid => [pid, ...children(pid)])
  const found = all.find(pid => readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith(BINARY))
  if (found === undefined) throw new Error('the exec daemon does not run')
  return found
}

asRoot(
  'P12 a command has no capabilities, no new privileges, the filter, and only its own group',
  async () => {
    const { stdout } = await daemon.run(
      'grep -E "^(Cap|Uid|Gid|Groups|NoNewPrivs|Seccomp:)" /proc/self/status',
    )
    const zero = '0'.repeat(16)
    expect(lines(stdout).map(line => line.replaceAll('\t', ' ').trimEnd())).toEqual([
      'Uid: 4321 4321 4321 4321',
      'Gid: 4321 4321 4321 4321',
      'Groups:',
      ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map(set => `Cap${set}: ${zero}`),
      'NoNewPrivs: 1',
      'Seccomp: 2',
    ])
  },
)

asRoot('P12 the exec daemon keeps what it needs to start and end commands, and nothing else', () => {
  const status = readFileSync(`/proc/${daemonPid()}/status`, 'latin1')
  const value = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1]
  expect(['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map(value)).toEqual([
    '0'.repeat(16),
    '00000000000000e0',
    '00000000000000e0',
    '0'.repeat(16),
    '0'.repeat(16),
  ])
  expect([value('NoNewPrivs'), value('Seccomp')]).toEqual(['1', '2'])
})

asRoot(
  'P12 a command can neither signal nor inspect the exec daemon, but can do both to its own child',
  async () => {
    const look = (pid: string) =>
      ['environ', 'mem', 'maps']
        .map(file => `cat /proc/${pid}/${file} 2>/dev/null | head -c 1 | wc -c`)
        .join('; ')
    const script = `sleep 60 & child=$!
    ${look('$PPID')}; ls /proc/$PPID/fd 2>&1 | grep -c denied
    cat /proc/$child/environ | head -c 1 | wc -c
    for signal in 9 19 15 1 2; do kill -$signal $PPID 2>&1 | grep -c permitted; done
    kill -9 $child && echo own`
    const { stdout } = await daemon.run(script)
    expect(lines(stdout)).toEqual(['0', '0', '0', '1', '1', '1', '1', '1', '1', '1', 'own'])
    const trace = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(16, os.getppid(), 0, 0))
print(ctypes.get_errno())`
    expect(lines((await daemon.run({ argv: ['python3', '-c', trace] })).stdout)).toEqual(['-1', '1'])
    expect((await daemon.run('echo lives')).stdout).toBe('lives\n')
  },
)

asRoot('P1 a command has three descriptors, owned by its user, and can reopen them', async () => {
  const { stdout, stderr } = await daemon.run(
    'echo again > /dev/stdout; echo too > /dev/stderr; ls /proc/self/fd',
  )
  // The last one belongs to the listing itself.
  expect([lines(stdout), lines(stderr)]).toEqual([['again', '0', '1', '2', '3'], ['too']])
})

asRoot(
  'P5 the home belongs to the user, and so do directories that the exec daemon cannot enter',
  async () => {
    const { uid, gid } = statSync(home)
    expect({ uid, gid }).toEqual(USER)
    const own = join(place, 'own')
    mkdirSync(own, { mode: 0o700 })
    writeFileSync(join(own, 'program'), '#!/bin/sh\necho ran in $PWD\n', { mode: 0o700 })
    for (const path of [own, join(own, 'program')]) chownSync(path, USER.uid, USER.gid)
    expect((await daemon.run({ argv: ['./program'], cwd: own })).stdout).toBe(`ran in ${own}\n`)
    const env = [{ name: 'PATH', value: own }]
    expect((await daemon.run({ argv: ['program'], cwd: home, env })).stdout).toBe(`ran in ${home}\n`)
    const closed = join(place, 'closed')
    mkdirSync(closed, { mode: 0o700 })
    expect((await daemon.run({ argv: ['true'], cwd: closed })).ending).toMatchObject({
      errno: 'EACCES',
      reason: `the directory ${closed} cannot be entered`,
    })
  },
)

asRoot('P13 a hundred megabytes pass, and the exec daemon’s memory does not grow', async () => {
  const pid = daemonPid()
  let most = 0
  let bytes = 0
  const execution = daemon.link.exec(
    orderOf('head -c 104857600 /dev/zero; head -c 1048576 /dev/zero >&2'),
    (_, piece) => {
      bytes += piece.length
      if (bytes % (8 * MIB) < piece.length) most = Math.max(most, proportionalSize(pid))
      return undefined
    },
  )
  expect(await execution.ended).toEqual({ kind: 'exit', code: 0 })
  expect(bytes).toBe(101 * MIB)
  expect(most).toBeLessThan(150 * MIB)
  const input = await daemon.run('wc -c', async execution => {
    for (let n = 0; n < 32; n++) await execution.write(new Uint8Array(MIB))
    execution.endInput()
  })
  expect(input.stdout.trim()).toBe(String(32 * MIB))
})

asRoot('P13 a reader that does not read blocks its own command and no other', async () => {
  const pid = daemonPid()
  let bytes = 0
  const never = Promise.withResolvers<void>()
  const stuck = daemon.link.exec(orderOf('exec yes'), (_, piece) => {
    bytes += piece.length
    return never.promise
  })
  const unread = daemon.link.exec(orderOf('exec sleep 60'), () => undefined)
  void unread.write(new Uint8Array(MIB))
  await until(() => bytes > 0)
  for (let n = 0; n < 20; n++) expect((await daemon.run('echo other')).stdout).toBe('other\n')
  expect(bytes).toBeLessThanOrEqual(64 * 1024)
  expect(proportionalSize(pid)).toBeLessThan(150 * MIB)
  stuck.kill()
  unread.kill()
  never.resolve()
  expect(await stuck.ended).toEqual({ kind: 'signal', signal: 9 })
  expect(await unread.ended).toEqual({ kind: 'signal', signal: 9 })
})

asRoot('P14 a hundred commands leave no process, no zombie and no descriptor', async () => {
  const pid = daemonPid()
  const count = async () => Number((await Bun.$`ls /proc/${pid}/fd | wc -l`.text()).trim())
  await daemon.run('true')
  const before = await count()
  for (let n = 0; n < 100; n++) {
    const order = n % 4 === 0 ? { argv: ['true'], terminal: { columns: 80, rows: 24 } } : { argv: ['true'] }
    expect((await daemon.run(order)).ending).toEqual({ kind: 'exit', code: 0 })
  }
  await until(async () => (await count()) <= before)
  const { stdout } = await daemon.run('cat /proc/[0-9]*/stat | wc -l; cat /proc/[0-9]*/stat | grep -c " Z "')
  // The init, the exec daemon, the shell, and the shell's reader.
  expect(lines(stdout).map(Number)[0]).toBeLessThanOrEqual(5)
  expect(lines(stdout)[1]).toBe('0')
})

asRoot('P14 kill finds processes that left their group, session and parents', async () => {
  const sleeping = async (seconds: number) => {
    const list = "for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $file; echo; done 2>/dev/null"
    const { stdout } = await daemon.run(`${list} | grep -c "^sleep ${seconds} "`)
    return Number(stdout)
  }
  const away = '(setsid sh -c "setsid sleep 4711 & sleep 4711" &)'
  const script = `trap "" TERM HUP; ${away}; setsid sleep 4711 & sleep 4711`
  const execution = daemon.link.exec(orderOf(script), () => undefined)
  await until(async () => (await sleeping(4711)) === 4)
  const other = daemon.link.exec(orderOf('exec sleep 4712'), () => undefined)
  execution.kill()
  expect(await execution.ended).toEqual({ kind: 'signal', signal: 9 })
  await until(async () => (await sleeping(4711)) === 0)
  expect(await sleeping(4712)).toBe(1)
  other.kill()
  expect(await other.ended).toEqual({ kind: 'signal', signal: 9 })
})

asRoot(
  'P14 kill finds processes that drop or forge their mark, and spares those of other commands',
  async () => {
    const count = async (name: string) => {
      const { stdout } = await daemon.run(`cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -cx '${name}[.]'`)
      return Number(stdout)
    }
    const hidden = (name: string, mark = '') =>
      `(env -i ${mark} setsid bash -c 'exec -a ${name}. sleep 4713' &)`
    await daemon.run(hidden('bystander'))
    await until(async () => (await count('bystander')) === 1)
    // The kernel's process times have steps of 10 ms.
    await Bun.sleep(30)
    let up = false
    const script = `trap '' TERM HUP; ${hidden('nameless')}; ${hidden('disguised', 'PEN_EXEC=1')}; sleep 0.1; echo up; sleep 4713`
    const execution = daemon.link.exec(orderOf(script), () => {
      up = true
      return undefined
    })
    await until(() => up)
    expect([await count('nameless'), await count('disguised')]).toEqual([1, 1])
    execution.kill()
    await execution.ended
    await until(async () => (await count('nameless')) + (await count('disguised')) === 0)
    expect(await count('bystander')).toBe(1)
    await daemon.run('pkill -f bystander')
  },
)

asRoot(
  'P15 a command on a terminal leads a session, sees its size change, and is interrupted by Ctrl-C',
  async () => {
    const script = `test -t 0 && test -t 1 && test -t 2 && echo all; stat -c %u $(tty); stty size
    trap 'stty size' WINCH; trap 'echo interrupted; exit 9' INT; echo up; while :; do sleep 0.05; done`
    let said = ''
    const terminal = { columns: 91, rows: 31 }
    const execution = daemon.link.exec(orderOf({ argv: ['sh', '-c', script], terminal }), (_, bytes) => {
      said += Buffer.from(bytes).toString()
      return undefined
    })
    await until(() => said.includes('up\r\n'))
    expect(lines(said)).toEqual(['all', '4321', '31 91', 'up'])
    execution.resize(120, 40)
    await until(() => said.includes('40 120'))
    await execution.write(Buffer.from('\x03'))
    expect(await execution.ended).toEqual({ kind: 'exit', code: 9 })
    expect(said).toContain('^Cinterrupted')
  },
)

asRoot('P15 a terminal that hangs up ends its foreground process', async () => {
  let said = ''
  const order = orderOf({
    argv: ['bash', '-ic', 'echo up; sleep 60; echo over'],
    terminal: { columns: 80, rows: 24 },
  })
  const execution = daemon.link.exec(order, (_, bytes) => {
    said += Buffer.from(bytes).toString()
    return undefined
  })
  await until(() => said.includes('up'))
  execution.signal('SIGHUP')
  expect(await execution.ended).toMatchObject({ kind: 'signal', signal: 1 })
  expect(said).not.toContain('over')
})

asRoot('P13 commands beyond the exec daemon’s limit are refused, and running ones go on', async () => {
  const many = Array.from({ length: 257 }, () =>
    daemon.link.exec(orderOf({ argv: ['cat'] }), () => undefined),
  )
  expect(await many[256]?.ended).toMatchObject({ kind: 'not-started', errno: 'EAGAIN' })
  for (const execution of many) execution.endInput()
  const endings = await Promise.all(many.slice(0, 256).map(execution => execution.ended))
  expect(endings.filter(ending => ending.kind !== 'exit' || ending.code !== 0)).toEqual([])
  expect((await daemon.run('echo room')).stdout).toBe('room\n')
})

asRoot('P17 when the supervisor dies, so do the exec daemon and everything it started', async () => {
  const other = startDaemon(SETUP, [...CONTAINER, BINARY])
  await other.link.ready
  const execution = other.link.exec(orderOf('trap "" TERM HUP; setsid sleep 60 & sleep 60'), () => undefined)
  other.link.close()
  expect(await execution.ended).toEqual({ kind: 'lost' })
  const watch = new Stopwatch()
  await other.child.exited
  expect(watch.ms).toBeLessThan(2000)
})
