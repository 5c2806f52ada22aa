/** Servers in the sandbox, and host programs that use them. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, connect as dial } from 'node:net'
import { join } from 'node:path'
import { isRoot } from '../conformance/launcher.ts'
import { until } from '../until.ts'
import { bytesBack, CLIENT, exchange, forward, freePort, greeted, serveInside } from './forwarded.ts'
import { lifecycleTest, type ProjectSandbox, START } from './project-sandbox.ts'

const refused = (port: number) => async () => expect(await exchange(port, 'x')).toBe('ECONNREFUSED')

/** Polls: what ends with a process ends a moment later. */
async function comesTo(port: number, answer: string): Promise<void> {
  const late = performance.now() + 10_000
  for (let last = ''; last !== answer; await Bun.sleep(10)) {
    last = await exchange(port, 'x')
    if (performance.now() > late) throw new Error(`it still answers ${last}`)
  }
}

const isRefused = (port: number): Promise<void> => comesTo(port, 'ECONNREFUSED')

const recorded = (here: ProjectSandbox, kind: string) =>
  here.audit().filter(record => record['kind'] === kind)

const STRANGER = 54_321
const HANG_UPS = 50
const HANGS_UP = `
import socket, sys
for again in range(${HANG_UPS}):
    s = socket.socket()
    try:
        s.connect(("127.0.0.1", int(sys.argv[1])))
        s.sendall(b"POST /")
    except OSError: pass
    s.close()
print("hung up")
`

/** Connections to that port whose client has closed its end, and which the kernel keeps half open. */
const faded = (port: number): number => {
  const end = port.toString(16).toUpperCase().padStart(4, '0')
  const row = new RegExp(`:[0-9A-F]{4} 0100007F:${end} 05 0{8}:0{8} \\S+ \\S+ +0 `)
  return readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .filter(line => row.test(line)).length
}

const asUser = (uid: number, port: number, program = CLIENT): string =>
  spawnSync(
    'setpriv',
    [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '/usr/bin/python3', '-c', program, String(port)],
    { encoding: 'utf8', timeout: 20_000 },
  ).stdout

lifecycleTest(
  'P10 P21 a server of the sandbox is reached through a forward alone: on loopback, by its user',
  async here => {
    await here.pen(...START)
    const port = await freePort()
    await serveInside(here, port)
    await refused(port)()

    const { command, ports } = await forward(here, String(port))
    expect(ports).toMatchObject([{ guest: port, host: port }])
    expect(JSON.parse((await here.pen('status', '--json')).stdout).forwards).toEqual(ports)
    const addresses = ports[0]?.addresses ?? []
    expect(addresses).toContain('127.0.0.1')
    for (const address of addresses) expect(await exchange(port, 'there', address)).toBe('hello there')
    expect(await exchange(port, 'there', '127.0.0.2')).toBe('ECONNREFUSED')
    if (isRoot) {
      const { uid } = here.box.launcher.who
      expect(asUser(uid, port)).toContain("got b'hello")
      expect(asUser(STRANGER, port)).toContain('got nothing')
      // When a socket closes before the check, the kernel soon reports root as its owner.
      const supervisor = here.supervisor() ?? 0
      process.kill(supervisor, 'SIGSTOP')
      expect(asUser(STRANGER, port, HANGS_UP)).toBe('hung up\n')
      await until(() => faded(port) === HANG_UPS)
      process.kill(supervisor, 'SIGCONT')
    }
    // Its own loopback is no way to the host's: the forward leads in, not out.
    const other = await freePort()
    const outside = createServer().listen(other, '127.0.0.1')
    const inward = await here.sh(
      `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${other}))' 2>&1`,
    )
    outside.close()
    expect(inward.stdout).toContain('refused')

    command.child.kill('SIGINT')
    await command.ended
    await isRefused(port)
    expect(recorded(here, 'forward-start')).toMatchObject([{ guest: port, host: port }])
    await until(() => recorded(here, 'forward-end').length === 1)
    const [end] = recorded(here, 'forward-end')
    expect(end).toMatchObject(
      isRoot
        ? { connections: addresses.length + 1, refused: 1 + HANG_UPS }
        : { connections: addresses.length },
    )
  },
)

lifecycleTest(
  'P14 a forward ends with the process that asked for it, also by SIGKILL, and with the sandbox',
  async here => {
    await here.pen(...START)
    const port = await freePort()
    await serveInside(here, port)
    const first = await forward(here, String(port))
    const open = await greeted(port)
    const closed = new Promise(done => open.once('close', done))
    open.removeAllListeners('error').on('error', () => undefined)
    first.command.child.kill('SIGKILL')
    await closed
    await isRefused(port)

    const second = await forward(here, String(port))
    expect(await exchange(port, 'again')).toBe('hello again')
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    expect(await second.command.ended).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('its ports are closed'),
    })
    await refused(port)()
    expect(recorded(here, 'forward-end')).toHaveLength(2)
    expect(here.audit().at(-1)?.['kind']).toBe('run-end')
  },
)

lifecycleTest(
  'P13 many connections and much data in both directions arrive complete',
  async here => {
    await here.pen(...START)
    const port = await freePort()
    // On IPv6 alone, like a program that listens on "localhost".
    await serveInside(here, port, '::1')
    const { ports } = await forward(here, `0:${port}`)
    const host = ports[0]?.host ?? 0
    expect(host).not.toBe(0)
    for (let turn = 0; turn < 200; turn++) expect(await exchange(host, `${turn}`)).toBe(`hello ${turn}`)
    const words = Array.from({ length: 20 }, (_, index) => `word ${index}`)
    expect(await Promise.all(words.map(word => exchange(host, word)))).toEqual(
      words.map(word => `hello ${word}`),
    )
    const much = randomBytes(16 * 2 ** 20)
    const back = await bytesBack(host, much)
    expect(back.length).toBe(much.length + 6)
    expect(back.subarray(6).equals(much)).toBe(true)
  },
  { users: 'ordinary' },
)

/** Greets, and never closes. */
const KEEPS = `
import socket
server = socket.create_server(("127.0.0.1", 3001), backlog=1024)
print("listens", flush=True)
kept = []
while True:
    kept.append(server.accept()[0])
    kept[-1].sendall(b"k")
`

/** More connections than places, each closed and gone. */
const GOES = `
import socket, sys
for _ in range(600):
    try:
        with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as client: client.recv(1)
    except OSError: pass
print("over")
`

lifecycleTest(
  'P13 a server that keeps every connection open does not block new ones',
  async here => {
    await here.pen(...START)
    const supervisor = here.start(['exec', '--', 'python3', '-c', KEEPS], { timeoutMs: 60_000 })
    await supervisor.printed('listens')
    await serveInside(here, 3000)
    const { ports } = await forward(here, '0:3000', '0:3001')
    const [echo = 0, held = 0] = ports.map(({ host }) => host)
    // A client that has closed its write side, and still reads.
    const waits = dial({ port: held, host: '127.0.0.1', allowHalfOpen: true })
    await new Promise<void>(done => waits.end('x', done))
    expect(asUser(here.box.launcher.who.uid, held, GOES)).toBe('over\n')
    await comesTo(echo, 'hello x')
    expect([waits.destroyed, waits.readableEnded]).toEqual([false, false])
    waits.destroy()
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P20 a port that cannot be forwarded is reported with its place and a fix',
  async here => {
    const port = await freePort()
    const idle = await here.pen('forward', String(port))
    expect(idle).toMatchObject({ code: 125, stderr: expect.stringContaining('pen start') })
    await here.pen(...START)
    const taken = createServer()
    await new Promise<void>(done => taken.listen(port, '127.0.0.1', done))
    const busy = await here.pen('forward', String(port))
    taken.close()
    expect([busy.code, busy.stdout]).toEqual([1, ''])
    for (const said of ['is already in use', `127.0.0.1:${port}`, '0 chooses a free one'])
      expect(busy.stderr).toContain(said)
    for (const wrong of ['0', '70000', 'http', '1:2:3', ':80', '80:', '01'])
      expect(await here.pen('forward', wrong)).toMatchObject({ code: 2, stdout: '' })
    expect(await here.pen('forward', '53')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is used by pen'),
    })
    // Nothing listens there inside: it is closed at once. The same forward works when a server listens.
    const { ports } = await forward(here, `0:${port}`)
    const host = ports[0]?.host ?? 0
    expect(['', 'ECONNRESET', 'EPIPE']).toContain(await exchange(host, 'x'))
    await serveInside(here, port)
    expect(await exchange(host, 'x')).toBe('hello x')
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P20 ports of the config are open from the start, or the start fails',
  async here => {
    const port = await freePort()
    const config = { version: 1, profile: 'coding', backend: 'process', network: { offline: true } }
    here.configure(JSON.stringify({ ...config, ports: [{ guest: port, host: port }] }))
    const taken = createServer()
    await new Promise<void>(done => taken.listen(port, '127.0.0.1', done))
    const busy = await here.pen('start', '--detach')
    taken.close()
    expect([busy.code, busy.stderr]).toEqual([1, expect.stringContaining('is already in use')])
    expect(await here.pen('start', '--detach')).toMatchObject({ code: 0 })
    await serveInside(here, port)
    expect(await exchange(port, 'there')).toBe('hello there')
    await here.pen('stop')
    await isRefused(port)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'a server that begins inside is in pen status, and pen open shows it to the browser',
  async here => {
    expect(await here.pen('open', '3000')).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('pen start'),
    })
    await here.pen(...START)
    const listening = async () => JSON.parse((await here.pen('status', '--json')).stdout).listening
    expect(await listening()).toEqual([])
    const port = await freePort()
    await serveInside(here, port, '::')
    expect(await listening()).toEqual([port])
    expect((await here.pen('status')).stdout).toContain(`servers    port ${port} (pen open ${port})`)
    const seen = join(here.box.home, 'seen')
    const browser = here.box.file('../browser', `#!/bin/sh\necho "$@" > ${seen}\n`, 0o755)
    const opened = here.start(['open', `0:${port}`], { env: { BROWSER: browser }, timeoutMs: 60_000 })
    await opened.printed('ends it')
    const [, url = '', host = ''] = /^(http:\/\/127\.0\.0\.1:(\d+)\/) → port/.exec(opened.stdout()) ?? []
    await until(() => existsSync(seen))
    expect(readFileSync(seen, 'utf8')).toBe(`${url}\n`)
    expect(await exchange(Number(host), 'there')).toBe('hello there')
    // It is forwarded now, so pen status does not offer it, and another pen open ends at once.
    expect((await here.pen('status')).stdout).not.toContain('pen open')
    const again = await here.pen('open', '--no-browser', `0:${port}`)
    expect([again.code, again.stdout]).toEqual([0, `${url} → port ${port} of the sandbox\n`])
  },
  { users: 'ordinary' },
)
