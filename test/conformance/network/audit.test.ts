/** The audit of real runs: complete, in order, once each, and safe to print. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../until.ts'
import type { AuditLine } from './project.ts'
import { forEachKind } from './world.ts'
import { EVIL, UP } from './zones.ts'

const count = (audit: readonly AuditLine[], kind: string) => audit.filter(line => line.kind === kind).length

forEachKind(
  'P18 every connection outside has its record inside, and the numbers have no gap',
  async (world, project) => {
    const heard = world.listen()
    const { audit } = await project.run(
      `for i in 1 2 3 4; do (
       for j in $(seq 10); do curl -s -o /dev/null http://allowed.test/$i/$j; curl -s -o /dev/null http://evil.test/; done
       curl -s -o /dev/null http://${EVIL}/; curl -s -o /dev/null http://silence.invalid/ ) & done; wait`,
      { allow: ['allowed.test:80', 'silence.invalid:80'] },
    )
    expect(audit.map(({ seq }) => seq)).toEqual(audit.map((_, i) => i + 1))
    expect(audit[0]?.kind).toBe('run-start')
    expect(audit.at(-1)?.kind).toBe('run-end')
    expect(heard.left.length).toBe(40)
    expect(heard.requests.length).toBe(40)
    expect(count(audit, 'connection-allowed')).toBe(44)
    expect(count(audit, 'connection-closed')).toBe(40)
    expect(count(audit, 'connection-failed')).toBe(4)
    expect(count(audit, 'connection-denied')).toBe(44)
    // Every record of one connection has its number, and an allowed one also has an end.
    const numbers = (kind: string) =>
      audit.filter(line => line.kind === kind).map(({ connection }) => connection)
    expect(new Set(numbers('connection-allowed'))).toEqual(
      new Set([...numbers('connection-closed'), ...numbers('connection-failed')]),
    )
    const end = audit.at(-1)?.['counts'] as Record<string, number>
    expect(end['connection-allowed']).toBe(44)
  },
  { users: 'ordinary' },
)

forEachKind(
  'P18 nothing that the sandbox sends forges a line, drives a terminal or grows without bound',
  async (_world, project) => {
    project.write(
      'hostile.py',
      `
import socket
names = [b'evil.test\\r\\n{"kind":"connection-allowed"}', b'\\x1b]52;c;aGk=\\x07\\x1b[2J.test', 'ev\\u202eil.test'.encode(), b'\\x00\\xff\\x9b', b'A' * 4000]
def say(port, data, to='allowed.test'):
    try:
        s = socket.create_connection((to, port), 2); s.sendall(data); s.settimeout(1); s.recv(9999); s.close()
    except OSError: pass
for name in names:
    say(80, b'GET / HTTP/1.1\\r\\nHost: ' + name + b'\\r\\n\\r\\n')
    say(1023, b'CONNECT ' + name + b':443 HTTP/1.1\\r\\n\\r\\n', '127.0.0.1')
    say(1023, b'GET http://' + name + b'/ HTTP/1.1\\r\\nUser-Agent: ' + name + b'\\r\\n\\r\\n', '127.0.0.1')
    sni = b'\\0' + len(name).to_bytes(2, 'big') + name
    ext = b'\\0\\0' + (len(sni) + 2).to_bytes(2, 'big') + len(sni).to_bytes(2, 'big') + sni
    body = b'\\3\\3' + b'r' * 32 + b'\\0' + b'\\0\\2\\x13\\1' + b'\\1\\0' + len(ext).to_bytes(2, 'big') + ext
    hand = b'\\1' + len(body).to_bytes(3, 'big') + body
    say(443, b'\\x16\\3\\1' + len(hand).to_bytes(2, 'big') + hand)
    q = b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + bytes([min(len(name), 63)]) + name[:63] + b'\\4test\\0\\0\\1\\0\\1'
    u = socket.socket(2, 2); u.sendto(q, ('127.0.0.1', 53)); u.close()
`,
    )
    const { audit } = await project.run('/usr/bin/python3 hostile.py', {
      allow: ['allowed.test:80', 'allowed.test:443'],
    })
    expect(count(audit, 'connection-denied')).toBe(20)
    const dir = join(project.stateDir, 'audit')
    const bytes = readdirSync(dir)
      .map(file => readFileSync(join(dir, file), 'utf8'))
      .join('')
    // Neither control characters nor bidirectional marks.
    expect(bytes.match(/[^\P{C}\n]/gu)).toBeNull()
    // A slow client was dialled for. The audit has no other record of this kind.
    expect(
      audit.filter(({ kind, rule }) => kind === 'connection-allowed' && !rule?.startsWith('allowed.test:')),
    ).toEqual([])
    expect(audit.map(({ seq }) => seq)).toEqual(audit.map((_, i) => i + 1))
    for (const line of bytes.trim().split('\n').slice(1)) expect(line.length).toBeLessThan(4096)
    for (const shown of [project.logs(), project.logs('--all'), project.logs('--json')])
      expect(shown.match(/[^\P{C}\n]/gu)).toBeNull()
    expect(project.logs()).toContain('allowed.test:443')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P18 the first record holds the policy without its secrets, and no sandbox can reach any',
  async (_world, project) => {
    const canary = 'canary-7c1f'
    const { audit, out } = await project.run(
      `ls -la ${project.stateDir} ${project.home}/.pen 2>&1; cat ${project.stateDir}/audit/* 2>&1; echo x >> ${project.stateDir}/audit/forged 2>&1`,
      {
        allow: ['allowed.test:80'],
        flags: ['--env', `TOKEN=${canary}`, '--env', 'HANDED'],
        env: { HANDED: canary, HTTPS_PROXY: `http://user:${canary}@192.0.2.9:3128`, UNNAMED: canary },
      },
    )
    expect(audit[0]?.kind).toBe('run-start')
    expect(JSON.stringify(audit[0]?.['policy'])).toContain('allowed.test:80')
    expect(JSON.stringify(audit[0]?.['policy'])).toContain('TOKEN')
    expect(JSON.stringify(audit)).not.toContain(canary)
    expect(project.logs('--all', '--json')).not.toContain(canary)
    expect(out).not.toContain('run-start')
    expect(existsSync(join(project.stateDir, 'audit/forged'))).toBe(false)
  },
)

forEachKind(
  'P18 a flood of refusals is bounded and counted, and allowed connections stay recorded',
  async (_world, project) => {
    const { audit, err, out } = await project.run(
      `curl -s http://allowed.test/; /usr/bin/python3 -c "
import socket
n = 0
for i in range(6000):
    s = socket.socket(); s.settimeout(1)
    try:
        s.connect(('203.0.113.9', 1024 + i)); n += 1; s.send(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
    except OSError: pass
    s.close()
print('accepted', n)"
     sleep 1; curl -s http://allowed.test/`,
      { allow: ['allowed.test:80'] },
    )
    const denied = count(audit, 'connection-denied')
    const unheard = audit
      .filter(({ limit }) => limit === 'denials-per-second' || limit === 'hung-up')
      .reduce((sum, { value }) => sum + Number(value), 0)
    // A client that stopped waiting may still have been heard.
    expect(denied + unheard).toBeGreaterThanOrEqual(Number(/accepted (\d+)/.exec(out)?.[1]))
    expect(denied + unheard).toBeLessThanOrEqual(6000)
    expect(denied).toBeLessThan(4000)
    expect(count(audit, 'connection-allowed')).toBe(2)
    expect(audit.map(({ seq }) => seq)).toEqual(audit.map((_, i) => i + 1))
    expect(err.split('\n').length).toBeLessThan(20)
  },
  { users: 'ordinary' },
)

forEachKind(
  'P7 a proxy of the host is used only when the config says so',
  async (world, project) => {
    const heard = world.listen()
    const env = {
      HTTPS_PROXY: `http://${EVIL}:8080`,
      http_proxy: `http://${EVIL}:8080`,
      ALL_PROXY: `http://${EVIL}:8080`,
      NO_PROXY: '.nothing',
    }
    const { out } = await project.run('curl -s http://allowed.test/; env | grep -i proxy', {
      allow: ['allowed.test:80'],
      env,
    })
    expect(out).toBe(`hello from ${UP} 80\nPEN_PROXY=http://127.0.0.1:1023\n`)
    expect(heard.left).toEqual([`tcp ${UP} 80`])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P18 refused datagrams are in the audit while the sandbox still runs',
  async (_world, project) => {
    const running = project.start(
      `/usr/bin/python3 -c "
import socket, time
for port in range(1000, 1005): socket.socket(2, 2).sendto(b'x', ('203.0.113.9', port))
for i in range(5000): socket.socket(2, 2).sendto(b'x', ('203.0.%d.%d' % (i >> 8, i & 255), 7))
print('sent', flush=True)
time.sleep(20)"`,
      { allow: ['allowed.test:80'] },
    )
    await until(() => running.text.out.includes('sent'))
    const printed = () => project.audit().filter(line => line.kind === 'flow-refused')
    await until(() => printed().length >= 4096)
    await until(() => project.audit().some(line => line['limit'] === 'refused-datagrams'))
    expect(printed().filter(line => line.address === '203.0.113.9').length).toBeGreaterThanOrEqual(5)
    running.child.kill('SIGTERM')
    await running.ended
    expect(printed().length).toBe(4096)
    expect(project.audit().filter(line => line.kind === 'limit-hit').length).toBe(1)
  },
)
