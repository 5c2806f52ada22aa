import { afterEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditEventInput } from '../audit/event.ts'
import type { ExecEnding, ExecOrder, ExecOutput, Execution } from '../backend/backend.ts'
import type { Project } from '../config/project.ts'
import { addressOf } from '../control/address.ts'
import { isAnswering, requestOrder, requestValue, sendRequest } from '../control/client.ts'
import { executeOver } from '../control/execution.ts'
import { takeValue } from '../control/messages.ts'
import { ControlSocket } from '../control/socket.ts'
import type { PortPair } from '../gateway/forward/forward.ts'
import type { Port } from '../policy/network/port.ts'
import { ControlServer } from './control-server.ts'
import type { Serving } from './supervision/supervisor.ts'

const undo: (() => void)[] = []
afterEach(() => {
  for (const one of undo.splice(0).reverse()) one()
})

/** Commands run on the host here: what is tried is the way to them, not the sandbox. */
class LocalExecution implements Execution {
  readonly ended: Promise<ExecEnding>
  readonly signals: string[] = []
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>

  constructor(order: ExecOrder, output: ExecOutput) {
    this.#child = Bun.spawn([...order.argv], {
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd: order.cwd,
      detached: true,
    })
    const { stdout, stderr, exited } = this.#child
    this.ended = Promise.all([relay(stdout, 'stdout', output), relay(stderr, 'stderr', output), exited]).then(
      () =>
        this.#child.signalCode === null
          ? { kind: 'exit', code: this.#child.exitCode ?? 0 }
          : { kind: 'signal', signal: 9 },
    )
  }
  async write(bytes: Uint8Array): Promise<void> {
    this.#child.stdin.write(bytes)
    await this.#child.stdin.flush()
  }
  endInput(): void {
    void this.#child.stdin.end()
  }
  resize(): void {}
  signal(name: NodeJS.Signals): void {
    this.signals.push(name)
    this.#send(name)
  }
  kill(): void {
    this.signals.push('kill')
    this.#send('SIGKILL')
  }
  #send(name: NodeJS.Signals): void {
    try {
      process.kill(-this.#child.pid, name)
    } catch {
      // Gone.
    }
  }
}

async function relay(from: ReadableStream, stream: 'stdout' | 'stderr', output: ExecOutput): Promise<void> {
  for await (const bytes of from as unknown as AsyncIterable<Uint8Array>) await output(stream, bytes)
}

interface Setting {
  readonly stateDir: string
  readonly server: ControlServer
  readonly recorded: AuditEventInput[]
  readonly begun: LocalExecution[]
  killed: number
  forwarded: number
}

function setting(directory = 'state', answering = true): Setting {
  const root = mkdtempSync(join(tmpdir(), 'pen-control-'))
  const stateDir = join(root, directory)
  mkdirSync(stateDir, { recursive: true, mode: 0o700 })
  const recorded: AuditEventInput[] = []
  const begun: LocalExecution[] = []
  const serving = {
    running: {
      exec: (order: ExecOrder, output: ExecOutput) => {
        const execution = new LocalExecution(order, output)
        begun.push(execution)
        return execution
      },
      kill: () => void here.killed++,
    },
    audit: { run: 'run-1', record: (event: AuditEventInput) => void recorded.push(event) },
    prepared: {
      plan: {
        workspace: '/project',
        backend: 'process',
        isolation: 'process',
        network: { kind: 'none', why: 'offline' },
        limits: { cpus: 1, memory: 1, pids: 1, disk: 1, wall: 1, output: 1, files: 1 },
        weaker: [],
        gaps: [],
      },
      loaded: { policy: { acceptGaps: [], exec: { ceiling: 2000 }, network: { ask: 'never' } } },
    },
    forwarding: {
      ports: [],
      open: async (pairs: readonly PortPair[]) => {
        here.forwarded += pairs.length
        const close = (): void => {
          here.forwarded -= pairs.length
        }
        return { ports: pairs, close }
      },
    },
    refusals: { all: 3, since: () => [], lines: () => ['refused: evil.test:443'] },
    limits: {
      look: () => undefined,
      usage: () => ({ cpuMs: 5, memoryBytes: 6, pids: 7 }),
      grown: async () => 8,
    },
  } as unknown as Serving
  const project = { id: 'project-1', stateDir } as Project
  const order = { id: 'project-1', flags: { profile: 'strict' }, offline: true, allowUserExpansion: false }
  const server = new ControlServer({
    project,
    serving,
    since: '2026-01-02T03:04:05.000Z',
    order,
    image: null,
  })
  if (answering) server.answer()
  undo.push(() => rmSync(root, { recursive: true, force: true }))
  undo.push(() => server.close())
  const here: Setting = { stateDir, server, recorded, begun, killed: 0, forwarded: 0 }
  return here
}

async function exec(stateDir: string, script: string, timeoutMs: number | null = null, output?: ExecOutput) {
  const asked = await sendRequest(stateDir, { want: 'exec', timeoutMs })
  if (asked === undefined) throw new Error('no answer')
  const said: Record<string, string> = { stdout: '', stderr: '' }
  const execution = executeOver(
    asked,
    { argv: ['/bin/sh', '-c', script], cwd: '/', env: [], terminal: undefined },
    output ??
      ((stream, bytes) => {
        said[stream] += Buffer.from(bytes).toString('latin1')
        return undefined
      }),
  )
  return { execution, said, granted: takeValue(asked.answer) }
}

async function until(what: () => boolean): Promise<void> {
  for (const late = performance.now() + 5000; !what(); await Bun.sleep(2))
    if (performance.now() > late) throw new Error('it did not happen')
}

describe('a control socket', () => {
  test('is for its owner alone, and gone when it is closed', async () => {
    const { stateDir, server } = setting()
    expect(statSync(`${stateDir}/control`).mode & 0o777).toBe(0o600)
    expect(await isAnswering(stateDir)).toBe(true)
    server.close()
    expect(await isAnswering(stateDir)).toBe(false)
  })

  test('works below a path that is longer than a socket address may be', async () => {
    const { stateDir } = setting(`${'d'.repeat(100)}/${'e'.repeat(100)}`)
    expect(await isAnswering(stateDir)).toBe(true)
    const { execution, said } = await exec(stateDir, 'echo far')
    expect(await execution.ended).toEqual({ kind: 'exit', code: 0 })
    expect(said['stdout']).toBe('far\n')
  })

  test('P13 whose commands are as many as may be still tells its user how it is', async () => {
    const { stateDir } = setting()
    const wish = { want: 'exec', timeoutMs: null } as const
    const asked = await Promise.all(Array.from({ length: 256 }, () => sendRequest(stateDir, wish)))
    expect(asked.every(one => one?.answer.ok === true)).toBe(true)
    expect((await sendRequest(stateDir, wish))?.answer).toMatchObject({ ok: false, error: { code: 'LIMIT' } })
    expect(await isAnswering(stateDir)).toBe(true)
    for (const one of asked) one?.socket.destroy()
    let isTaken: boolean = false
    for (const late = performance.now() + 5000; !isTaken && performance.now() < late; ) {
      const again = await sendRequest(stateDir, wish)
      isTaken = again?.answer.ok === true
      again?.socket.destroy()
    }
    expect(isTaken).toBe(true)
  })

  test('answers no request before the starter has confirmed the start', async () => {
    const { stateDir, server } = setting('state', false)
    let isAnswered = false
    const asking = isAnswering(stateDir).then(answer => {
      isAnswered = true
      return answer
    })
    await Bun.sleep(30)
    expect(isAnswered).toBe(false)
    server.answer()
    expect(await asking).toBe(true)
  })

  test('tells status, stats and what it was started with', async () => {
    const { stateDir } = setting()
    expect((await requestValue(stateDir, 'status'))?.value).toMatchObject({
      id: 'project-1',
      run: 'run-1',
      gateway: null,
    })
    expect((await requestValue(stateDir, 'stats'))?.value).toMatchObject({
      cpuMs: 5,
      diskBytes: 8,
      network: null,
    })
    expect(await requestOrder(stateDir)).toMatchObject({ flags: { profile: 'strict' }, offline: true })
  })

  test('ends the sandbox with the program that owns it, and with no other', async () => {
    const here = setting()
    const guest = await sendRequest(here.stateDir, { want: 'ping' })
    guest?.socket.destroy()
    const owner = await sendRequest(here.stateDir, { want: 'own' })
    expect(owner?.answer).toEqual({ ok: true, value: null })
    expect(await isAnswering(here.stateDir)).toBe(true)
    expect(here.killed).toBe(0)
    owner?.socket.destroy()
    await until(() => here.killed === 1)
  })

  test('forwards ports as long as the requester is connected', async () => {
    const here = setting()
    const pair = { guest: 3000 as Port, host: 0 } as const
    const one = await sendRequest(here.stateDir, { want: 'forward', ports: [pair] })
    const two = await sendRequest(here.stateDir, { want: 'forward', ports: [pair, pair] })
    expect(two?.answer).toEqual({ ok: true, value: { ports: [pair, pair] } })
    expect(here.forwarded).toBe(3)
    one?.socket.destroy()
    await until(() => here.forwarded === 2)
    here.server.close()
    await until(() => here.forwarded === 0)
  })

  test('hangs up on whatever is no request, and goes on with others', async () => {
    const { stateDir } = setting()
    const random = crypto.getRandomValues(new Uint8Array(5000))
    const header = (length: number, kind: number) =>
      Uint8Array.of(0, 0, length >> 8, length & 255, kind, 0, 0, 0, 0)
    const wire = (text: string) => Buffer.concat([header(text.length, 32), Buffer.from(text)])
    const odd = [
      random,
      header(0xffff, 32),
      header(0, 33),
      wire('{"want":"everything"}'),
      wire('{"want":"ping","more":1}'),
      wire('{"want":"exec","timeoutMs":-1}'),
      wire('{"want":"judge","access":"own","path":"/a"}'),
      wire('{"want":"judge","access":"read"}'),
      wire('{"want":"judge","access":"read","path":"/a\\u0000"}'),
      wire('{"want":"forward","ports":[]}'),
      wire('{"want":"forward","ports":[{"guest":0,"host":0}]}'),
      wire('{"want":"forward","ports":[{"guest":"80","host":80}]}'),
      wire('{"want":"forward","ports":[{"guest":80,"host":65536}]}'),
      wire('{"want":"forward","ports":[{"guest":80,"host":80,"address":"0.0.0.0"}]}'),
      wire('[]'),
    ]
    for (const bytes of odd) {
      const hungUp = Promise.withResolvers<void>()
      const socket = new ControlSocket()
      socket.attach({ data: () => hungUp.reject(new Error('answered')), closed: () => hungUp.resolve() })
      const address = addressOf(`${stateDir}/control`)
      await Bun.connect({ unix: address.path, data: socket, socket: ControlSocket.handlers })
      socket.send(bytes)
      await hungUp.promise
    }
    expect(await isAnswering(stateDir)).toBe(true)
  })

  test('stop asks the commands first, then ends the sandbox', async () => {
    const here = setting()
    const { execution, said } = await exec(
      here.stateDir,
      'trap "echo asked; exit 3" TERM; echo up; sleep 9 & wait',
    )
    await until(() => said['stdout'] === 'up\n')
    here.server.stop()
    expect(await execution.ended).toEqual({ kind: 'exit', code: 3 })
    expect(said['stdout']).toBe('up\nasked\n')
    await until(() => here.killed > 0)
  })
})

describe('a command over the control socket', () => {
  test('has its streams apart, its exit code, and two records', async () => {
    const { stateDir, recorded } = setting()
    const { execution, said } = await exec(stateDir, 'cat; echo err >&2; exit 7')
    await execution.write(Buffer.from('in\n'))
    execution.endInput()
    expect(await execution.ended).toEqual({ kind: 'exit', code: 7 })
    expect(said).toEqual({ stdout: 'in\n', stderr: 'err\n' })
    await until(() => recorded.length === 2)
    expect(recorded).toMatchObject([
      { kind: 'exec-start', execution: 1, cwd: '/', terminal: false },
      { kind: 'exec-end', execution: 1, exitCode: 7 },
    ])
  })

  test('passes 20 MB each way, whole', async () => {
    const { stateDir } = setting()
    let came = 0
    const { execution } = await exec(stateDir, 'cat', null, (_, bytes) => {
      came += bytes.length
      return undefined
    })
    const piece = new Uint8Array(100_000).fill(7)
    for (let i = 0; i < 200; i++) await execution.write(piece)
    execution.endInput()
    expect(await execution.ended).toEqual({ kind: 'exit', code: 0 })
    expect(came).toBe(20_000_000)
  })

  test('that no client reads holds up itself alone, within bounds', async () => {
    const { stateDir } = setting()
    let held = 0
    const never = Promise.withResolvers<void>()
    const slow = await exec(stateDir, 'head -c 50000000 /dev/zero', null, (_, bytes) => {
      held += bytes.length
      return never.promise
    })
    await until(() => held > 0)
    const quick = await exec(stateDir, 'echo quick; head -c 1000000 /dev/zero | wc -c >&2')
    expect(await quick.execution.ended).toEqual({ kind: 'exit', code: 0 })
    expect(quick.said).toEqual({ stdout: 'quick\n', stderr: '1000000\n' })
    expect(held).toBeLessThan(256 * 1024 + 1)
    slow.execution.kill()
    never.resolve()
    await slow.execution.ended
  })

  test('that exceeds its timeout is reported, asked to end and killed; the policy caps the timeout', async () => {
    const { stateDir, begun, recorded } = setting()
    const { execution, granted } = await exec(stateDir, 'sleep 20', 100)
    expect(granted).toEqual({ timeoutMs: 100, execution: 1, run: 'run-1', refused: 3 })
    expect(await execution.ended).toEqual({ kind: 'exit', code: 124 })
    expect(begun[0]?.signals).toEqual(['SIGTERM', 'kill'])
    expect(recorded.at(-1)).toMatchObject({ kind: 'exec-end', exitCode: null, reason: 'timeout' })
    const long = await exec(stateDir, 'true', 3_600_000)
    expect(long.granted).toEqual({ timeoutMs: 2000, execution: 2, run: 'run-1', refused: 3 })
    await long.execution.ended
  })

  test('whose client goes away gets SIGHUP, and is killed when it stays', async () => {
    const { stateDir, begun, recorded } = setting()
    const asked = await sendRequest(stateDir, { want: 'exec', timeoutMs: null })
    if (asked === undefined) throw new Error('no answer')
    const script = 'trap "" HUP; sleep 20'
    executeOver(
      asked,
      { argv: ['/bin/sh', '-c', script], cwd: '/', env: [], terminal: undefined },
      () => undefined,
    )
    await until(() => begun.length === 1)
    asked.socket.destroy()
    await until(() => recorded.length === 2)
    expect(begun[0]?.signals.slice(0, 2)).toEqual(['SIGHUP', 'kill'])
    expect(recorded.at(-1)).toMatchObject({ kind: 'exec-end', reason: 'client' })
  })

  test('does not begin when it cannot be recorded', async () => {
    const here = setting()
    const asked = await sendRequest(here.stateDir, { want: 'exec', timeoutMs: null })
    if (asked === undefined) throw new Error('no answer')
    here.recorded.push = () => {
      throw new Error('disk full')
    }
    const execution = executeOver(
      asked,
      { argv: ['/bin/true'], cwd: '/', env: [], terminal: undefined },
      () => undefined,
    )
    expect(await execution.ended).toMatchObject({ kind: 'not-started', errno: 'EIO' })
    expect(here.begun).toHaveLength(0)
  })
})
