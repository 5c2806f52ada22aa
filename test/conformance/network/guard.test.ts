/**
 * An allowed name leads only where names may lead, whatever its name server says, or where a rule names the
 * address.
 */
import { expect } from 'bun:test'
import { runSteps } from './steps.ts'
import { forEachKind } from './world.ts'
import { BROKEN, EVIL, LOCAL_PLACES, OWN, UP } from './zones.ts'

const status = (url: string, more = '') => `curl -s -m8 -o /dev/null -w '%{http_code}' ${more} ${url}`
const LOCAL = Object.keys(LOCAL_PLACES)

forEachKind(
  'P8 an allowed name that leads to a local address is refused before a packet goes there',
  async (world, project) => {
    const heard = world.listen()
    const script = `for n in ${LOCAL.join(' ')}; do printf '%s ' $n; ${status('http://$n/')}; echo; done
    for n in loopback.test metadata.test six-mapped.test own.test; do printf '%s ' $n; ${status('http://$n/', '-x $PEN_PROXY')}; echo; done
    curl -s http://allowed.test/`
    const { out, audit } = await project.run(script, {
      allow: [...LOCAL, 'allowed.test'].map(name => `${name}:80`),
    })
    const lines = out.trim().split('\n')
    expect(lines.filter(line => !line.endsWith(' 403'))).toEqual([`hello from ${UP} 80`])
    expect(lines.length).toBe(LOCAL.length + 5)
    expect(heard.left).toEqual([`tcp ${UP} 80`])
    expect(heard.loopback).toEqual([])
    expect(heard.hostRequests).toEqual([])
    const denied = audit.filter(({ kind }) => kind === 'connection-denied')
    expect(denied.length).toBe(LOCAL.length + 4)
    expect(new Set(denied.map(({ reason }) => reason))).toEqual(
      new Set(['address-not-allowed', 'local-name']),
    )
  },
  { containers: true },
)

forEachKind(
  'P8 a local IP literal is refused in every spelling',
  async (world, project) => {
    const heard = world.listen()
    const targets = [
      ...['169.254.169.254', '10.1.2.3', '192.168.1.1', '100.64.0.1', OWN, '[fd00:ec2::254]', '[fe80::1]'],
      ...[
        '[::ffff:169.254.169.254]',
        '[::ffff:198.51.100.66]',
        '[64:ff9b::7f00:1]',
        '[2002:7f00:1::]',
        '[2600:cafe::1]',
      ],
    ]
    const viaProxy = [
      '127.0.0.1',
      '[::1]',
      '0.0.0.0',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '[::]',
      'localhost',
      '[::ffff:7f00:1]',
    ]
    const script = `for n in ${[...targets].join(' ')}; do printf '%s ' "$n"; ${status('-g "http://$n:8098/"')}; echo; done
    for n in ${[...targets, ...viaProxy].join(' ')}; do printf '%s ' "$n"; ${status('-g "http://$n:8098/"', '-x $PEN_PROXY')}; echo; done
    for n in ${viaProxy.join(' ')}; do exec 3<>/dev/tcp/127.0.0.1/1023; printf 'CONNECT %s:8098 HTTP/1.1\\r\\nHost: %s:8098\\r\\n\\r\\n' "$n" "$n" >&3; printf '%s ' "$n"; head -c 12 <&3; echo; exec 3>&-; done`
    project.write('literals.sh', script)
    const { out } = await project.run('exec bash literals.sh', { allow: ['allowed.test:80'] })
    const lines = out.trim().split('\n')
    expect(lines.length).toBe(2 * targets.length + 2 * viaProxy.length)
    expect(lines.filter(line => !/ (HTTP\/1\.1 )?40[03]$/.test(line) && !line.endsWith(' 000'))).toEqual([])
    expect([heard.left, heard.loopback, heard.hostRequests]).toEqual([[], [], []])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P8 a name that changes its address between two answers reaches only the checked address',
  async (world, project) => {
    const heard = world.listen()
    const script = `for i in $(seq 200); do ${status('http://rebind.test/')}; echo; done | sort | uniq -c
    for n in mixed.test many.test forever.test; do ${status('http://$n/')}; echo " $n"; done`
    const { out } = await project.run(script, {
      allow: ['rebind.test:80', 'mixed.test:80', 'many.test:80', 'forever.test:80'],
    })
    expect(heard.loopback).toEqual([])
    expect(heard.hostRequests).toEqual([])
    expect(new Set(heard.left)).toEqual(new Set([`tcp ${UP} 80`]))
    const count = (code: number) => Number(new RegExp(`(\\d+) ${code}\\n`).exec(out)?.[1] ?? 0)
    expect(count(200) + count(403)).toBe(200)
    expect(count(200)).toBeGreaterThan(50)
    expect(count(403)).toBeGreaterThan(50)
    expect(out).toContain('200 mixed.test')
    expect(out).toContain('200 forever.test')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P8 a broken answer fails within seconds, and is reported as a failure',
  async (world, project) => {
    const heard = world.listen()
    const names = Object.keys(BROKEN)
    const script = `for n in ${names.join(' ')}; do (printf '%s %s\\n' $n $(${status('http://$n/')})) & done; wait`
    const { out, ms, audit } = await project.run(script, { allow: names.map(name => `${name}:80`) })
    const lines = out.trim().split('\n').sort()
    expect(lines.filter(line => !/ 50[24]$/.test(line))).toEqual([])
    expect(lines.length).toBe(names.length)
    expect(ms).toBeLessThan(7500)
    expect(heard.left.filter(flow => !/^(tcp 192.0.2.2 53|icmp 192.0.2.2)$/.test(flow))).toEqual([])
    expect(audit.filter(({ kind }) => kind === 'connection-failed').length).toBe(names.length)
  },
  { users: 'ordinary' },
)

forEachKind(
  'P8 a rule that names the exact address opens it, and host.pen.internal is the host’s loopback',
  async (world, project) => {
    const heard = world.listen()
    const { steps } = await runSteps(
      project,
      {
        privateAddress: 'curl -s http://10.1.2.3/',
        privateName: 'curl -s http://private-ten.test/',
        own: `curl -s http://${OWN}:8098/`,
        service: 'curl -s http://host.pen.internal:8099/',
        otherPort: status('http://host.pen.internal:8098/'),
        loopback: status('http://127.0.0.1:8099/'),
        localhost: status('http://localhost:8099/'),
        hostsFile: status('http://by-hosts-file.test/'),
        alias: 'curl -s http://alias-out.test/',
        neighbour: status('http://10.1.2.4/'),
        otherOwn: status(`http://${OWN}:80/`),
      },
      {
        allow: [
          ...['10.1.2.3:80', 'private-ten.test:80', `${OWN}:8098`, 'host.pen.internal:8099'],
          ...['by-hosts-file.test:80', 'alias-out.test:80'],
        ],
      },
    )
    expect(steps.privateAddress.said).toBe('hello from 10.1.2.3 80\n')
    expect(steps.privateName.said).toBe('hello from 10.1.2.3 80\n')
    expect(steps.own.said).toBe(`hello from ${OWN} 8098\n`)
    expect(steps.service.said).toBe('hello from 127.0.0.1 8099\n')
    // The allowed name decides. Its owner may point it anywhere except to a local address.
    expect(steps.alias.said).toBe(`hello from ${EVIL} 80\n`)
    for (const name of ['otherPort', 'hostsFile', 'neighbour', 'otherOwn'] as const)
      expect([name, steps[name].said]).toEqual([name, '403'])
    // The sandbox's own loopback, where nothing listens.
    for (const name of ['loopback', 'localhost'] as const) expect(steps[name].said).toBe('000')
    expect(heard.hostRequests).toEqual([
      `request ${OWN} 8098 GET ${OWN}:8098 /`,
      'request 127.0.0.1 8099 GET host.pen.internal:8099 /',
    ])
  },
  { containers: true },
)

forEachKind(
  'P8 the client follows redirects, and each is judged like any request',
  async (world, project) => {
    const heard = world.listen()
    const { steps } = await runSteps(
      project,
      {
        evil: 'curl -sL http://allowed.test/redirect',
        loopback: `curl -sL -H 'x-where: http://127.0.0.1:8099/' http://allowed.test/redirect -w '%{http_code}'`,
        metadata: `curl -sL -H 'x-where: http://169.254.169.254/latest' http://allowed.test/redirect -w '%{http_code}'`,
        allowed: `curl -sL -H 'x-where: http://allowed.test/there' http://allowed.test/redirect`,
      },
      { allow: ['allowed.test:80'] },
    )
    expect(steps.evil.said).toContain('no rule allows evil.test')
    expect(steps.loopback.said).toEndWith('302')
    expect(steps.metadata.said).toEndWith('403')
    expect(steps.allowed.said).toBe(`hello from ${UP} 80\n`)
    expect(new Set(heard.left)).toEqual(new Set([`tcp ${UP} 80`]))
    expect(heard.hostRequests).toEqual([])
  },
  { users: 'ordinary' },
)
