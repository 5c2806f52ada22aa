/** The network of a soft sandbox: a proxy that asks the policy, and that no other user of the machine can use. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { isRoot } from '../conformance/launcher.ts'
import { within } from '../until.ts'
import { forEverybody, SOFT, type SoftBox } from './soft-box.ts'

/** A service of the host that records its clients. */
async function recorder(): Promise<{ port: number; heard: string[]; close(): void }> {
  const heard: string[] = []
  const server: Server = createServer((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.on('data', data => {
      heard.push(String(data).split('\r\n')[0] ?? '')
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello')
    })
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  return { port: (server.address() as { port: number }).port, heard, close: () => void server.close() }
}

const get = (url: string) => ['curl', '-s', '-S', '-m', '10', '-w', '%{http_code}', url]

forEverybody(
  'an allowed service is reached, another is refused with its fix, and both are in the audit',
  async box => {
    const outside = await recorder()
    try {
      box.config({ network: { tcp: [`host.pen.internal:${outside.port}`] } })
      const allowed = await box.run(...get(`http://host.pen.internal:${outside.port}/yes`))
      expect(allowed.stdout).toBe('hello200')
      const refused = await box.run(...get('http://refused.example.com/no'))
      expect(refused.stdout).toEndWith('403')
      expect(refused.stdout).toContain('pen allow refused.example.com:80')
      const local = await box.run(...get(`http://127.0.0.1:${outside.port}/local`))
      expect(local.stdout).toEndWith('403')
      const tls = await box.run(
        'curl',
        '-s',
        '-m',
        '10',
        '-o',
        '/dev/null',
        '-w',
        '%{http_connect}',
        'https://refused.example.com/',
      )
      expect(tls.stdout).toBe('403')
      expect(outside.heard).toEqual(['GET /yes HTTP/1.1'])
      expect(box.of('connection-allowed')).toMatchObject([
        { name: 'host.pen.internal', port: outside.port, soft: true },
      ])
      expect(
        box.of('connection-denied').map(line => [line['name'] ?? line['address'], line['port']]),
      ).toEqual([
        ['refused.example.com', 80],
        ['127.0.0.1', outside.port],
        ['refused.example.com', 443],
      ])
    } finally {
      outside.close()
    }
  },
)

forEverybody('without a network the proxy refuses everything, and says why', async box => {
  const outside = await recorder()
  try {
    box.config({ network: { tcp: [`host.pen.internal:${outside.port}`] } })
    const url = `http://host.pen.internal:${outside.port}/`
    const off = await box.pen(...SOFT.slice(0, -1), '--offline', '--', ...get(url))
    expect(off.stdout).toEndWith('403')
    expect(off.stdout).toContain('offline')
    expect(outside.heard).toEqual([])
    expect(box.of('connection-denied')).toMatchObject([{ reason: 'offline' }])
  } finally {
    outside.close()
  }
})

/** What a stranger receives. */
function say(port: number, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes))
    socket.on('data', data => {
      heard += String(data)
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(heard))
  })
}

async function waiting(box: SoftBox) {
  box.config({ tools: { shell: true }, network: { tcp: ['host.pen.internal:9'] } })
  const run = box.start([...SOFT, 'sh', '-c', 'echo "$PEN_PROXY"; echo up; sleep 60'])
  expect(await within(15_000, () => run.said.stdout.includes('up\n'))).toBe(true)
  const url = new URL(run.said.stdout.split('\n')[0] ?? '')
  return { run, port: Number(url.port), user: url.username, secret: url.password }
}

forEverybody('a client without the secret gets 407 and nothing else; one with it is judged', async box => {
  const { run, port, user, secret } = await waiting(box)
  const ANSWER =
    'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="pen"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
  const request = (line: string, more = '') => `${line}\r\nHost: x.example\r\n${more}\r\n`
  const basic = (text: string) => `Proxy-Authorization: Basic ${Buffer.from(text).toString('base64')}\r\n`
  const strangers = [
    request('GET http://refused.example.com/ HTTP/1.1'),
    request('CONNECT host.pen.internal:9 HTTP/1.1'),
    request('GET / HTTP/1.1'),
    request('CONNECT host.pen.internal:9 HTTP/1.1', basic(`${user}:wrong`)),
    request('CONNECT host.pen.internal:9 HTTP/1.1', basic(`${user}:${secret}x`)),
    request('CONNECT host.pen.internal:9 HTTP/1.1', basic(`${user}:${secret}`).repeat(2)),
    'nonsense\r\n\r\n',
    'GET http://half',
    '',
    Buffer.from([22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]),
  ]
  for (const bytes of strangers) expect([bytes, await say(port, bytes)]).toEqual([bytes, ANSWER])
  const known = await say(
    port,
    request('GET http://refused.example.com/ HTTP/1.1', basic(`${user}:${secret}`)),
  )
  expect(known).toStartWith('HTTP/1.1 403 ')
  run.child.kill('SIGTERM')
  await run.ended
  expect(box.of('connection-denied')).toMatchObject([{ name: 'refused.example.com' }])
  expect(box.of('connection-allowed')).toEqual([])
  expect(box.of('limit-hit').filter(line => line['limit'] === 'proxy-secret').length).toBeGreaterThan(0)
  // The proxy ends with pen.
  expect(say(port, 'x')).rejects.toThrow()
})

if (isRoot)
  forEverybody('another user finds the secret nowhere; root finds it in the environment alone', async box => {
    const { run, secret } = await waiting(box)
    const of = (file: string) =>
      readdirSync('/proc')
        .filter(name => /^\d+$/.test(name))
        .flatMap(pid => {
          try {
            return readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(secret) ? [pid] : []
          } catch {
            return []
          }
        })
    expect(of('cmdline')).toEqual([])
    const printed = of('environ')
    expect(printed.length).toBeGreaterThan(0)
    const files = [
      ...printed.map(pid => `/proc/${pid}/environ`),
      `${box.state}/audit`,
      `${box.state}/config.json`,
    ]
    const stranger = ['--reuid=64399', '--regid=64399', '--clear-groups', 'cat', ...files]
    const { stdout, stderr } = spawnSync('setpriv', stranger, { encoding: 'utf8' })
    expect(stdout).toBe('')
    expect(stderr.match(/Permission denied/g)).toHaveLength(files.length)
    run.child.kill('SIGTERM')
    await run.ended
    expect(JSON.stringify(box.audit())).not.toContain(secret)
  })
