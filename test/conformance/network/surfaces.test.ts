/** What a sandbox can touch of pen, the machine and its neighbours: nothing that no rule names. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { runSteps } from './steps.ts'
import { forEachKind, type World } from './world.ts'
import { EVIL, OWN } from './zones.ts'

const SCAN = `
import socket, sys
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    found = []
    for port in range(1, 65536):
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(1)
            # A socket that was given the very port it dials meets itself.
            if s.connect_ex((address, port)) == 0 and s.getsockname()[1] != port: found.append(port)
    print(address, *found)
`

function listening(world: World): string[] {
  const [program = '', ...rest] = [...world.on('host'), 'ss', '-Hltnup']
  return spawnSync(program, rest, { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(line => line.includes('"pen'))
}

forEachKind('P10 on the sandbox’s loopback only the stub and the proxy listen', async (world, project) => {
  project.write('scan.py', SCAN)
  const heard = world.listen()
  const { steps } = await runSteps(
    project,
    {
      scan: '/usr/bin/python3 scan.py',
      root: 'curl -si http://127.0.0.1:1023/; curl -si http://127.0.0.1:1023/metrics; curl -si -X OPTIONS http://127.0.0.1:1023/*',
      host: `curl -si -H 'Host: host.pen.internal' http://127.0.0.1:1023/config; curl -si -H 'Host: pen' http://127.0.0.1:1023/healthz`,
      self: 'curl -si -x $PEN_PROXY http://127.0.0.1:1023/; curl -si -x $PEN_PROXY http://localhost:1023/; curl -si -x $PEN_PROXY http://host.pen.internal:1023/',
      connectSelf:
        'curl -sS -p -x $PEN_PROXY http://127.0.0.1:53/; curl -sS -p -x $PEN_PROXY http://[::1]:1023/',
      stub: `printf 'GET / HTTP/1.1\\r\\n\\r\\n' | timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/53; cat >&3; cat <&3'`,
      socks: `curl -sS -m3 --socks5-hostname 127.0.0.1:1023 http://allowed.test/; curl -sS -m3 --socks4a 127.0.0.1:1023 http://allowed.test/`,
      sockets: 'tail -n +2 /proc/net/unix; find /run /tmp /var /home -type s 2>/dev/null',
    },
    { allow: ['allowed.test:80'] },
  )
  expect(steps.scan.said.trim().split('\n')).toEqual(['127.0.0.1 53 1023', '::1 53'])
  expect(steps.root.said.match(/^HTTP\/1.1 400 /gm)?.length).toBe(3)
  expect(steps.host.said.match(/x-pen-denied: not-a-proxy-request/g)?.length).toBe(2)
  expect(steps.self.said.match(/^HTTP\/1.1 403 /gm)?.length).toBe(3)
  expect(steps.connectSelf.said.match(/response 403/g)?.length).toBe(2)
  expect(steps.stub.said).toBe('')
  expect(steps.socks.said).not.toContain('hello from')
  // The file broker's socket: it serves granted files, and decides on the host.
  expect(steps.sockets.said).toBe('/run/pen/broker\n')
  expect([heard.left, heard.loopback, heard.hostRequests]).toEqual([[], [], []])
})

forEachKind(
  'P10 services of the machine are out of reach, and pen listens on none of its ports',
  async (world, project) => {
    const heard = world.listen()
    const running = project.start('echo up; sleep 3', { allow: ['allowed.test:80'] })
    while (!running.text.out.includes('up')) await Bun.sleep(20)
    expect(listening(world)).toEqual([])
    running.child.kill('SIGTERM')
    await running.ended
    const places = [
      '127.0.0.1',
      'localhost',
      OWN,
      '[2600:cafe::1]',
      'host.pen.internal',
      'host.docker.internal',
    ]
    const more = [
      'host.containers.internal',
      'gateway.docker.internal',
      '10.0.2.2',
      '172.17.0.1',
      '169.254.1.2',
      '192.0.2.2',
    ]
    const script = [...places, ...more]
      .flatMap(host =>
        [8098, 8099].map(
          port =>
            `printf '${host} '; curl -g -s -m3 -o /dev/null -w '%{http_code}\\n' http://${host}:${port}/`,
        ),
      )
      .join('\n')
    const { out } = await project.run(`${script}\nhostname; getent hosts $(hostname)`, {
      allow: ['allowed.test:80'],
    })
    expect(out.split('\n').filter(line => / (2|3|5)\d\d$/.test(line))).toEqual([])
    expect(out.match(/ (403|000)$/gm)?.length).toBe(2 * (places.length + more.length))
    expect([heard.left, heard.loopback, heard.hostRequests]).toEqual([[], [], []])
  },
  { containers: true },
)

forEachKind(
  'P10 the server of one sandbox is unreachable from another, and from the machine',
  async (world, project) => {
    using other = world.project({ name: 'root', user: 'root' })
    const serving = other.start(
      `/usr/bin/python3 -m http.server 9000 >/dev/null 2>&1 & 
     /usr/bin/python3 -m http.server --bind :: 9001 >/dev/null 2>&1 &
     until curl -s -o /dev/null http://127.0.0.1:9000/ && curl -g -s -o /dev/null 'http://[::1]:9001/'; do sleep 0.05; done; echo up; sleep 20`,
      { allow: ['allowed.test:80'] },
    )
    while (!serving.text.out.includes('up')) await Bun.sleep(20)
    const { out } = await project.run(
      [
        '127.0.0.1:9000',
        `${OWN}:9000`,
        'host.pen.internal:9000',
        '[::1]:9001',
        '198.18.0.1:9000',
        `${EVIL}:9000`,
      ]
        .map(place => `printf '${place} '; curl -g -s -m3 -o /dev/null -w '%{http_code}\\n' http://${place}/`)
        .join('\n'),
      { allow: ['allowed.test:80', 'host.pen.internal:9000'] },
    )
    const [program = '', ...rest] = [...world.on('host'), 'curl', '-s', '-m2', `http://127.0.0.1:9000/`]
    const fromHost = spawnSync(program, rest, { encoding: 'utf8' })
    serving.child.kill('SIGTERM')
    await serving.ended
    expect(
      out
        .trim()
        .split('\n')
        .filter(line => line.endsWith(' 200')),
    ).toEqual([])
    // Even with the rule: the name means the machine, and nothing listens there.
    expect(out).toContain('host.pen.internal:9000 502')
    expect(fromHost.status).toBe(7)
  },
  { containers: true },
)
