import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  orderOf,
  pair,
  type RunningDaemon,
  run,
  SETUP,
  startDaemon,
} from '../../test/exec-daemon/exec-daemon.ts'
import { takenOver } from '../../test/exec-daemon/taken-over.ts'
import { Stopwatch } from '../../test/stopwatch.ts'
import type { Report } from '../protocol/exec-messages.ts'
import { encodeFrame } from '../protocol/frame.ts'
import { WINDOW } from '../protocol/window.ts'
import { DaemonLink } from './daemon-link.ts'
import { adoptDaemonSocket, DaemonSocket, listenForDaemon } from './daemon-socket.ts'

const until = async (holds: () => boolean): Promise<void> => {
  for (const began = performance.now(); !holds(); await Bun.sleep(1))
    if (performance.now() - began > 5000) throw new Error('the test did not get that far')
}

const started: Report = { kind: 'started', channel: 1 }
const exit: Report = { kind: 'exit', channel: 1, how: 'exit', value: 0 }
const stdout = (bytes: number): Report => ({ kind: 'stdout', channel: 1, bytes: new Uint8Array(bytes) })

describe('an exec daemon that was taken over ends the link, and commands are lost, when it', () => {
  const crimes: Record<string, (Report | Uint8Array)[]> = {
    'is ready twice': [{ kind: 'ready' }],
    'speaks of a command that was never ordered': [{ kind: 'started', channel: 9 }],
    'writes before it has started': [stdout(1)],
    'ends what it has not started': [exit],
    'starts twice': [started, started],
    'fails what it has started': [started, { kind: 'failed', channel: 1, errno: 'ENOENT', reason: 'no' }],
    'writes more than there is room for': [started, ...Array.from({ length: 5 }, () => stdout(65_536))],
    'gives room that it does not have': [started, { kind: 'window', channel: 1, bytes: 1 }],
    'ends the output of a command, which is not a connection': [started, { kind: 'stdout-end', channel: 1 }],
    'sends an order': [encodeFrame(3, 1, Uint8Array.of(1))],
    'sends a frame that is too large': [Uint8Array.of(0xff, 0, 0, 0, 18, 0, 0, 0, 1)],
    'sends a message in parts': [started, encodeFrame(18, 1, new Uint8Array(70_000))],
  }
  for (const [crime, reports] of Object.entries(crimes))
    test(crime, async () => {
      const { link, say } = await takenOver()
      const execution = link.exec(orderOf('true'), () => new Promise<void>(() => undefined))
      const other = link.exec(orderOf('true'), () => undefined)
      say(...reports)
      await link.closed
      expect(await other.ended).toEqual({ kind: 'lost' })
      // Output that came in time is still being delivered to a reader that takes none.
      if (!crime.includes('more than')) expect(await execution.ended).toEqual({ kind: 'lost' })
      expect(await link.exec(orderOf('true'), () => undefined).ended).toEqual({ kind: 'lost' })
    })

  test('ends twice', async () => {
    const { link, say } = await takenOver()
    const execution = link.exec(orderOf('true'), () => undefined)
    say(started, exit)
    expect(await execution.ended).toEqual({ kind: 'exit', code: 0 })
    say(exit)
    await link.closed
  })

  test('does not listen any more', async () => {
    const [ours, theirs] = pair()
    const link = new DaemonLink(adoptDaemonSocket(ours), SETUP)
    const value = 'x'.repeat(1_000_000)
    for (let n = 0; n < 30; n++) link.exec(orderOf({ argv: [value] }), () => undefined)
    await link.closed
    closeSync(theirs)
    expect(await link.ready.catch((error: Error) => error.message)).toContain('ended before it was ready')
  })
})

describe('the flow of a link', () => {
  test('stops while the output is not read, and goes on when it is', async () => {
    const { link, say, heard } = await takenOver()
    const gate = Promise.withResolvers<void>()
    let bytes = 0
    const execution = link.exec(orderOf('true'), (_, piece) => {
      bytes += piece.length
      return gate.promise
    })
    const granted = () => heard.flatMap(order => (order.kind === 'window' ? [order.bytes] : []))
    say(started, stdout(60_000), stdout(60_000), stdout(60_000))
    await until(() => bytes > 0)
    await Bun.sleep(20)
    expect([bytes, granted()]).toEqual([60_000, []])
    gate.resolve()
    await until(() => granted().length > 0)
    say(exit)
    expect(await execution.ended).toEqual({ kind: 'exit', code: 0 })
    expect(bytes).toBe(180_000)
  })

  test('sends a command no more input than it has room for', async () => {
    const { link, say, heard } = await takenOver()
    const execution = link.exec(orderOf('cat'), () => undefined)
    say(started)
    let written = false
    const write = execution.write(new Uint8Array(WINDOW + 1)).then(() => {
      written = true
    })
    const sent = () =>
      heard.reduce((sum, order) => sum + (order.kind === 'stdin' ? order.bytes.length : 0), 0)
    await until(() => sent() === WINDOW)
    await Bun.sleep(10)
    expect([sent(), written]).toEqual([WINDOW, false])
    say({ kind: 'window', channel: 1, bytes: WINDOW })
    await write
    await until(() => sent() === WINDOW + 1)
    link.close()
    expect(await execution.ended).toEqual({ kind: 'lost' })
  })
})

describe('a real exec daemon', () => {
  let daemon: RunningDaemon
  beforeAll(async () => {
    daemon = startDaemon()
    await daemon.link.ready
  })
  afterAll(() => daemon.end())

  test('reports stdout, stderr and the exit code apart', async () => {
    const ran = await daemon.run('echo out; echo err >&2; exit 7')
    expect(ran).toEqual({ ending: { kind: 'exit', code: 7 }, stdout: 'out\n', stderr: 'err\n' })
  })

  test('reports which signal ended a command', async () => {
    expect((await daemon.run('kill -9 $$')).ending).toEqual({ kind: 'signal', signal: 9 })
    expect((await daemon.run('kill -TERM $$')).ending).toEqual({ kind: 'signal', signal: 15 })
  })

  test('passes input on, and its end', async () => {
    const ran = await daemon.run({ argv: ['cat'] }, execution => {
      void execution.write(Buffer.from('one ')).then(() => execution.write(Buffer.from('two')))
      void execution.write(new Uint8Array()).then(() => execution.endInput())
    })
    expect(ran.stdout).toBe('one two')
  })

  test('finds programs as execvp does, and says what it did not find', async () => {
    const ending = async (order: Parameters<typeof daemon.run>[0]) => (await daemon.run(order)).ending
    expect(await ending({ argv: ['true'] })).toEqual({ kind: 'exit', code: 0 })
    expect(await ending({ argv: ['no-such-program'] })).toMatchObject({ errno: 'ENOENT' })
    expect(await ending({ argv: ['/etc/passwd'] })).toMatchObject({ kind: 'not-started', errno: 'EACCES' })
    expect(await ending({ argv: ['./true'], cwd: '/bin' })).toEqual({ kind: 'exit', code: 0 })
    expect(await ending({ argv: ['true'], env: [{ name: 'PATH', value: '/nowhere' }] })).toMatchObject({
      reason: 'true was not found in the sandbox',
    })
    expect(await ending({ argv: ['true'], cwd: '/no/such/place' })).toMatchObject({
      errno: 'ENOENT',
      reason: 'the directory /no/such/place does not exist in the sandbox',
    })
    expect(await ending({ argv: ['true'], cwd: '/etc/passwd' })).toMatchObject({ errno: 'ENOTDIR' })
    expect(await ending({ argv: ['echo', 'x'.repeat(300_000)] })).toMatchObject({ errno: 'E2BIG' })
  })

  test('never receives an order that it would not understand', async () => {
    const ending = async (order: Parameters<typeof daemon.run>[0]) => (await daemon.run(order)).ending
    const long = Array.from({ length: 30 }, () => 'x'.repeat(100_000))
    expect(await ending({ argv: ['true', ...long] })).toMatchObject({ kind: 'not-started', errno: 'E2BIG' })
    expect(await ending({ argv: ['true', 'a\0b'] })).toMatchObject({ kind: 'not-started', errno: 'EINVAL' })
    expect(await ending({ argv: ['true'], cwd: 'relative' })).toMatchObject({ errno: 'EINVAL' })
    expect(await ending({ argv: ['true'], env: [{ name: 'A=B', value: '' }] })).toMatchObject({
      errno: 'EINVAL',
    })
    expect(await ending({ argv: ['true', ...long.slice(0, 12)] })).toEqual({ kind: 'exit', code: 0 })
  })

  test('gives a command the image’s variables, under the sandbox’s, under its own', async () => {
    const env = [{ name: 'PATH', value: '/bin' }]
    const { stdout } = await daemon.run({ argv: ['/usr/bin/env'], env, cwd: '/tmp' })
    const lines = stdout.trimEnd().split('\n')
    for (const line of ['IMAGE=says so', 'AGENT_IN_SANDBOX=1', 'PATH=/bin', 'PWD=/tmp'])
      expect(lines).toContain(line)
    expect(lines.filter(line => line.startsWith('LD_'))).toEqual([])
  })

  test('starts a shell when nothing is named', async () => {
    const { stdout } = await daemon.run({ argv: [] }, execution => {
      void execution.write(Buffer.from('echo "$0"\n')).then(() => execution.endInput())
    })
    expect(stdout).toBe(existsSync('/bin/bash') ? '/bin/bash\n' : '/bin/sh\n')
  })

  test('does not wait for processes that a command left behind, and does not end them', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'pen-daemon-'))
    try {
      const watch = new Stopwatch()
      const later = `(sleep 1; echo late; echo late; echo done > ${directory}/done) &`
      const ran = await daemon.run(`echo now; ${later}`)
      expect(ran).toEqual({ ending: { kind: 'exit', code: 0 }, stdout: 'now\n', stderr: '' })
      expect(watch.ms).toBeLessThan(900)
      await until(() => existsSync(`${directory}/done`))
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('signals the whole group of a command', async () => {
    const script = 'trap "wait; exit 5" USR1; (trap "echo child; exit" USR1; echo up; sleep 60 & wait) & wait'
    let said = ''
    const execution = daemon.link.exec(orderOf(script), (_, bytes) => {
      said += Buffer.from(bytes).toString()
      if (said === 'up\n') execution.signal('SIGUSR1')
      return undefined
    })
    expect(await execution.ended).toEqual({ kind: 'exit', code: 5 })
    expect(said).toBe('up\nchild\n')
  })

  test('ends with its link, and a command with it is lost', async () => {
    const other = startDaemon()
    const execution = run(other.link, 'sleep 60')
    await other.link.ready
    await other.end()
    expect((await execution).ending).toEqual({ kind: 'lost' })
  })
})

test('only pen starts an exec daemon, and one without a supervisor ends', async () => {
  const start = (env: Record<string, string>, place: string) => {
    const main = join(import.meta.dir, '../main.ts')
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, main, '__exec-daemon', place], { env })
    return { exitCode, stderr: stderr.toString() }
  }
  const byHelper = start({}, 'unix:/nonexistent/agent')
  expect(byHelper.exitCode).toBe(2)
  expect(byHelper.stderr).toContain('__exec-daemon is not a verb: pen starts it by itself')
  const inside = { AGENT_IN_SANDBOX: '1' }
  expect(start(inside, 'tcp:127.0.0.1:80').exitCode).toBe(2)
  expect(start(inside, 'unix:/nonexistent/agent').exitCode).not.toBe(0)
})

describe('the socket of an exec daemon', () => {
  test('takes one connection, and is then removed', async () => {
    const directory = mkdtempSync(join(tmpdir(), `pen-${'long-'.repeat(20)}`))
    try {
      const path = join(directory, 'agent')
      const listener = listenForDaemon(path)
      expect(statSync(path).mode & 0o777).toBe(0o666)
      process.chdir(directory)
      const first = await Bun.connect({
        unix: 'agent',
        data: new DaemonSocket(),
        socket: DaemonSocket.handlers,
      })
      await listener.connected
      expect(existsSync(path)).toBe(false)
      first.end()
      listener.close()
    } finally {
      process.chdir('/')
      rmSync(directory, { recursive: true })
    }
  })
})
