/** The allowed name is the name on the wire: through the door of a real sandbox, judged by what arrived. */
import { expect } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { clientHello, extension } from '../../gateway/hello.ts'
import { until } from '../../until.ts'
import type { Project } from './project.ts'
import { runSteps } from './steps.ts'
import { forEachKind } from './world.ts'
import { EVIL, UP } from './zones.ts'

interface Answer {
  readonly label: string
  readonly how: string
  readonly heard: string
}

type Line = readonly [label: string, host: string, port: number, ...bytes: (string | Uint8Array)[]]

async function speak(project: Project, lines: readonly Line[]): Promise<Map<string, Answer>> {
  copyFileSync(join(import.meta.dir, 'speak.py'), join(project.workspace, 'speak.py'))
  const hex = (bytes: string | Uint8Array) => Buffer.from(bytes as string, 'latin1').toString('hex')
  project.write(
    'lines.json',
    JSON.stringify(lines.map(([label, host, port, ...bytes]) => [label, host, port, ...bytes.map(hex)])),
  )
  const { out, err } = await project.run('exec /usr/bin/python3 speak.py lines.json', {
    allow: ['allowed.test:2222', 'allowed.test:80', 'allowed.test:443'],
  })
  const answers = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Answer)
  if (answers.length !== lines.length) throw new Error(err)
  return new Map(answers.map(answer => [answer.label, answer]))
}

const split = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

forEachKind('P9 a ClientHello that names another server, or none, never arrives', async (world, project) => {
  const to = (label: string, ...bytes: Uint8Array[]): Line => [label, 'allowed.test', 2222, ...bytes]
  const heard = world.listen()
  const evil = clientHello({ names: ['evil.test'] })
  const refused: Line[] = [
    to('other name', evil),
    to('no name', clientHello({ names: [] })),
    to('an address', clientHello({ names: ['198.51.100.66'] })),
    to('two names', clientHello({ names: ['allowed.test', 'evil.test'] })),
    to('longer name', clientHello({ names: ['allowed.test.evil.test'] })),
    to('with a NUL', clientHello({ names: ['allowed.test\0.evil.test'] })),
    to(
      'two extensions',
      clientHello({ extensions: [extension(0, Buffer.from('000b00000865766c2e74657374', 'hex'))] }),
    ),
    to('one byte a record', clientHello({ names: ['evil.test'], perRecord: 1 })),
    to('one byte at a time', ...split(evil, 40)),
    to('too long', clientHello({ names: ['allowed.test'], padding: 65_505 })),
    to('behind an empty change of cipher', Buffer.from('1403010000', 'hex'), evil),
    to('behind a warning', Buffer.concat([Buffer.from('1503010002015a', 'hex'), evil])),
    to('behind a warning of no version', Buffer.concat([Buffer.from('1501010002015a', 'hex'), evil])),
    to('of no version', Buffer.concat([Buffer.from('160400', 'hex'), evil.subarray(3)])),
    to('behind an empty record of no version', Buffer.from('1602000000', 'hex'), evil),
  ]
  const answers = await speak(project, refused)
  for (const { label, heard: bytes } of answers.values())
    expect([label, bytes.replace(/^welcome.*\n/, '')]).toEqual([label, '\x15\x03\x03\x00\x02\x02\x31'])
  expect(heard.requests.filter(line => line.startsWith('bytes'))).toEqual([])

  const good = clientHello({ names: ['Allowed.TEST'] })
  // A MySQL packet: a length of three bytes, little-endian, and a number.
  const login = Buffer.concat([Buffer.from('1501000185a20f00', 'hex'), Buffer.alloc(273, 'x')])
  const allowed = await speak(project, [
    to('in one piece', good),
    to('one byte a record', clientHello({ perRecord: 1 })),
    to('in pieces', ...split(good, 40)),
    to('a login that looks like a warning', login),
  ])
  expect(allowed.get('a login that looks like a warning')?.heard).toEndWith(login.toString('latin1'))
  expect(allowed.get('in one piece')?.heard).toEndWith(good.toString('latin1'))
  expect(allowed.get('in pieces')?.heard).toEndWith(good.toString('latin1'))
  expect(heard.requests.filter(line => line.startsWith(`bytes ${UP} 2222`)).length).toBeGreaterThanOrEqual(4)
})

forEachKind(
  'P9 a request that names another host never arrives, first or second',
  async (world, project) => {
    const to = (label: string, ...bytes: string[]): Line => [label, 'allowed.test', 80, ...bytes]
    const heard = world.listen()
    const good = 'GET /good HTTP/1.1\r\nHost: allowed.test\r\n\r\n'
    const bad = 'GET /bad HTTP/1.1\r\nHost: evil.test\r\n\r\n'
    const answers = await speak(project, [
      to('other host', bad),
      to('absolute form', 'GET http://evil.test/bad HTTP/1.1\r\nHost: allowed.test\r\n\r\n'),
      to('two hosts', 'GET /bad HTTP/1.1\r\nHost: allowed.test\r\nHost: evil.test\r\n\r\n'),
      to('other port', 'GET /bad HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n'),
      to('connect', 'CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n'),
      to('folded', 'GET /bad HTTP/1.1\r\nHost: allowed.test\r\n evil.test\r\n\r\n'),
      to('spaced', 'GET /bad HTTP/1.1\r\nHost : evil.test\r\n\r\n'),
      to('old', 'GET /bad\r\n'),
      to('http2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      to('blank first', '\r\n\r\nGET /bad HTTP/1.1\r\nHost: evil.test\r\n\r\n'),
      to(
        'both lengths',
        'POST /bad HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ),
      to('in pieces', 'GE', 'T /bad HTTP/1.1\r\nHo', 'st: evil.te', 'st\r\n\r\n'),
      to('pipelined', good + bad),
      to('after an answer', good, bad),
      to(
        'smuggled',
        `GET /good HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: ${bad.length}\r\n\r\n${bad}`,
      ),
      to('trailing dot', 'GET /good HTTP/1.1\r\nHost: Allowed.Test.:80\r\n\r\n'),
    ])
    const text = (label: string) => answers.get(label)?.heard ?? ''
    for (const label of ['other host', 'absolute form', 'other port', 'connect', 'in pieces'])
      expect([label, text(label)]).toEqual([
        label,
        expect.stringMatching(/^HTTP\/1.1 403 [\s\S]*x-pen-denied: host-mismatch/),
      ])
    for (const label of ['two hosts', 'folded', 'spaced', 'both lengths'])
      expect([label, text(label).slice(0, 12)]).toEqual([label, 'HTTP/1.1 400'])
    for (const label of ['old', 'http2', 'blank first'])
      expect([label, text(label)]).toEqual([label, expect.not.stringContaining('hello from')])
    for (const label of ['pipelined', 'after an answer']) {
      expect([label, text(label)]).toEqual([label, expect.stringContaining('hello from')])
      expect([label, text(label)]).toEqual([label, expect.stringContaining('x-pen-denied: host-mismatch')])
    }
    for (const label of ['smuggled', 'trailing dot']) expect(text(label)).toStartWith('HTTP/1.1 200')
    // What arrived names only the allowed host, once for each good request.
    expect(
      heard.requests.filter(
        line => !/^request 198.51.100.10 80 GET allowed\.test\.?(:80)? \/good$/.test(line),
      ),
    ).toEqual([])
    expect(heard.requests.length).toBe(4)
  },
  { containers: true },
)

forEachKind(
  'P9 a request with an invalid HTTP version never arrives, and text that is no request does',
  async (world, project) => {
    const to = (line: string): Line => [line, 'allowed.test', 2222, `${line}\r\nHost: evil.test\r\n\r\n`]
    const heard = world.listen()
    const refused = ['POST /', 'PUT /bad RTSP/1.0', 'SOURCE / ICE/1.0', 'OPTIONS *', 'get http://evil.test/']
    const answers = await speak(project, refused.map(to))
    for (const { label, heard: bytes } of answers.values())
      expect([label, bytes]).toEqual([label, expect.not.stringContaining('evil.test')])
    expect(heard.requests.filter(line => line.startsWith('bytes'))).toEqual([])

    const others = ['get /index.html', 'KEYS *', 'EHLO allowed.test', 'OPTIONS sip:a@allowed.test SIP/2.0']
    const line = (text: string): Line => [text, 'allowed.test', 2222, `${text}\r\n`]
    const allowed = await speak(project, others.map(line))
    for (const { label, heard: bytes } of allowed.values())
      expect([label, bytes]).toEqual([label, expect.stringContaining(`${label}\r\n`)])
    // With a Host header after it, each is a request to some server.
    const hosted = await speak(project, others.map(to))
    for (const { label, heard: bytes } of hosted.values())
      expect([label, bytes]).toEqual([label, expect.not.stringContaining('evil.test')])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P9 a connection goes to the allowed name, not to the address that was dialled',
  async (world, project) => {
    const heard = world.listen()
    const { steps } = await runSteps(
      project,
      {
        connectTo: `curl -sS --connect-to allowed.test:443:${EVIL}:443 https://allowed.test/`,
        resolve: `curl -sS --resolve allowed.test:80:${EVIL} http://allowed.test/`,
        host: `curl -sS -H 'Host: allowed.test' http://${EVIL}/`,
        borrowed: `curl -sS --resolve evil.test:80:$(getent hosts allowed.test | cut -d' ' -f1) http://evil.test/`,
        fronted: `openssl s_client -proxy 127.0.0.1:1023 -connect allowed.test:443 -servername evil.test </dev/null`,
        frontedHost: `curl -sS -x $PEN_PROXY -H 'Host: evil.test' https://allowed.test/ -o /dev/null -w '%{http_code}'`,
        proxied: `curl -sS -x $PEN_PROXY -H 'Host: evil.test' http://allowed.test/canonical`,
        twin: `openssl s_client -proxy 127.0.0.1:1023 -connect allowed.test:443 -servername allowed.test -verify_return_error </dev/null`,
      },
      { allow: ['allowed.test:443', 'allowed.test:80'] },
    )
    expect(steps.connectTo.said).toContain('access denied')
    for (const name of ['resolve', 'host'] as const)
      expect(steps[name].said).toContain(`no rule names the address ${EVIL}`)
    expect(steps.borrowed.said).toContain('its Host names another')
    expect(steps.fronted.said).toContain('alert number 49')
    expect(steps.proxied.said).toBe(`hello from ${UP} 80\n`)
    expect(steps.twin.said).toContain('Verify return code: 0 (ok)')
    expect(steps.twin.code).toBe(0)
    expect(heard.left.filter(flow => flow.includes(EVIL))).toEqual([])
    // In absolute form the target decides, and the server sees that name alone.
    expect(heard.requests).toContain(`request ${UP} 80 GET allowed.test /canonical`)
    // pen does not look inside TLS: it passes through unopened.
    expect(steps.frontedHost.said).toBe('200')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P6 the last bytes a program sends before it ends arrive',
  async (world, project) => {
    const heard = world.listen()
    const rounds = project.isContainer ? 3 : 8
    for (let i = 0; i < rounds; i++) {
      const { code } = await project.run(
        `exec /usr/bin/python3 -c "
import socket
s = socket.create_connection(('allowed.test', 80), 5)
s.sendall(b'GET /last-word-${i} HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')"`,
        { allow: ['allowed.test:80'] },
      )
      expect(code).toBe(0)
    }
    await until(() => heard.requests.filter(line => line.includes('/last-word-')).length === rounds)
  },
  { containers: true, users: 'ordinary' },
)
