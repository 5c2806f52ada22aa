import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { openDoor } from '../../src/gateway/netns/door.ts'
import type { StreamSocket } from '../../src/gateway/stream/stream-socket.ts'
import { silent } from '../gateway/listen.ts'
import { until } from '../until.ts'
import {
  type Answer,
  asRoot,
  client,
  command,
  descendants,
  dialled,
  forEachKind,
  inside,
  isOurs,
  kinds,
  namespaces,
  onLinux,
  prepareDriver,
  removeDriver,
  SYSTEM,
} from './run-door.ts'

/** The rules of the door, as `nft` prints them. */
const RULES = `table inet pen {
  set refused4 { type ipv4_addr . inet_service; size 4096; flags dynamic; }
  set refused6 { type ipv6_addr . inet_service; size 4096; flags dynamic; }
  chain dialled {
    type nat hook output priority -100; policy accept;
    udp dport 53 dnat ip to 127.0.0.1:53
    udp dport 53 dnat ip6 to [::1]:53
    ip daddr 127.0.0.0/8 tcp dport 53 dnat ip to 127.0.0.1:53
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    meta l4proto tcp dnat to :1
  }
  chain arriving {
    type filter hook input priority 0; policy accept;
    ct direction reply accept
    ip daddr 127.0.0.0/8 tcp dport 1 reject with tcp reset
    ip6 daddr ::1 tcp dport 1 reject with tcp reset
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    meta nfproto ipv4 meta l4proto udp add @refused4 { ip daddr . udp dport }
    meta nfproto ipv6 meta l4proto udp add @refused6 { ip6 daddr . udp dport }
    meta l4proto udp reject
  }
}
`

beforeAll(prepareDriver)
afterAll(removeDriver)

describe('a door', () => {
  forEachKind(
    'P6 gets every connection to every address and port, and knows its original destination',
    kind => {
      const targets: [string, number][] = [
        ['1.2.3.4', 443],
        ['198.18.0.7', 22],
        ['169.254.169.254', 80],
        ['10.0.0.1', 65535],
        ['192.0.2.1', 1],
        ['192.0.2.1', 53],
        ['192.0.2.1', 1023],
        ['240.0.0.1', 8080],
        ['::ffff:192.0.2.9', 443],
        ['2001:db8::5', 5432],
        ['fd00::1', 443],
        ['64:ff9b::7f00:1', 80],
      ]
      const { results, events } = inside(
        kind,
        targets.map(([address, port]) => ['tcp', address, port]),
      )
      expect(results).toEqual(targets.map(() => 'door'))
      expect(dialled(events)).toEqual(
        targets.map(([address, port]) => `${address.replace('::ffff:', '')} ${port}`),
      )
    },
  )

  forEachKind(
    'P6 leaves loopback to the sandbox: its own servers work, and nothing else answers there',
    kind => {
      const { results, events } = inside(kind, [
        ['serve', '127.0.0.1', 8080],
        ['serve', '127.0.0.9', 5432],
        ['serve', '::1', 8443],
        ['tcp', '127.0.0.1', 443],
        ['tcp', '127.0.0.1', 1],
        ['tcp', '::1', 1],
        ['tcp', '0.0.0.0', 443],
        ['udp', '127.0.0.1', 9999],
      ])
      expect(results.slice(0, 3)).toEqual(['own', 'own', 'own'])
      expect(results.slice(3)).toEqual(Array.from({ length: 5 }, () => 'ECONNREFUSED'))
      expect(dialled(events)).toEqual([])
    },
  )

  forEachKind('P7 refuses UDP at once and records its destination', kind => {
    const { results, slowest, event } = inside(kind, [
      ['udp', '192.0.2.53', 443],
      ['udp', '192.0.2.53', 443],
      ['udp', '2001:db8::53', 443],
      ['udp', '169.254.169.254', 123],
      ['udp', '224.0.0.251', 5353],
    ])
    expect(results).toEqual(['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED', 'EINVAL'])
    expect(slowest).toBeLessThan(500)
    const refused = event('refused')?.['datagrams'] as { address: string; port: number }[]
    expect(refused.map(({ address, port }) => `${address} ${port}`).sort((a, b) => (a < b ? -1 : 1))).toEqual(
      ['169.254.169.254 123', '192.0.2.53 443', '2001:db8::53 443'],
    )
  })

  forEachKind('P7 answers DNS itself, whichever resolver a program uses', kind => {
    const { results, event } = inside(kind, [
      ['udp', '127.0.0.1', 53],
      ['udp', '127.0.0.53', 53],
      ['udp', '192.0.2.8', 53],
      ['udp', '::1', 53],
      ['udp', '2001:db8::8', 53],
      ['tcp', '127.0.0.1', 53],
      ['tcp', '127.0.0.53', 53],
      ['tcp', '::1', 53],
      ['tcp', '127.0.0.1', 1023],
    ])
    expect(results).toEqual([...Array.from({ length: 8 }, () => 'dns'), 'proxy'])
    expect(event('refused')?.['datagrams']).toEqual([])
  })

  forEachKind('P10 its ports cannot be taken by the sandbox; higher ports can', kind => {
    const { results } = inside(kind, [
      ['bind', 'SOCK_STREAM', '0.0.0.0', 1],
      ['bind', 'SOCK_STREAM', '127.0.0.2', 53],
      ['bind', 'SOCK_DGRAM', '127.0.0.2', 53],
      ['bind', 'SOCK_DGRAM', '::', 53],
      ['bind', 'SOCK_STREAM', '127.0.0.1', 1022],
      ['bind', 'SOCK_STREAM', '127.0.0.1', 1024],
    ])
    expect(results).toEqual([...Array.from({ length: 5 }, () => 'EACCES'), 'bound'])
  })

  forEachKind('P7 the namespace has no network interface, and the sandbox cannot configure it', kind => {
    const { results } = inside(kind, [
      ['run', 'ip', '-brief', 'link'],
      ['run', 'ip', 'link', 'set', 'lo', 'down'],
      ['run', 'ip', 'route', 'del', 'local', 'default', 'dev', 'lo', 'table', 'local'],
      ['run', 'ip', 'link', 'add', 'd0', 'type', 'dummy'],
      ['run', 'nft', 'delete', 'table', 'inet', 'pen'],
      ['run', 'unshare', '-Urn', 'true'],
      ['run', 'nsenter', '-t', '1', '-n', 'true'],
      ['write', '/proc/sys/net/ipv4/ip_unprivileged_port_start', '0'],
      ['raw', 'AF_INET', 'SOCK_RAW', 1],
      ['raw', 'AF_INET', 'SOCK_DGRAM', 1],
      ['raw', 'AF_PACKET', 'SOCK_RAW', 3],
      ['tcp', '192.0.2.1', 443],
    ])
    const [links, ...others] = results as { code: number; out: string }[]
    expect(links?.out).toMatch(/^lo\s[^\n]*\n$/)
    const codes = others.slice(0, 6).map(({ code }) => code)
    expect(codes.every(code => code !== 0)).toBe(true)
    expect(results.slice(7)).toEqual(['EACCES', 'EPERM', 'EACCES', 'EPERM', 'door'])
  })

  forEachKind(
    'P20 on a kernel without packet filter the allowed ports still work, and others are refused',
    kind => {
      const { results, slowest, events, event } = inside(
        kind,
        [
          ['tcp', '192.0.2.1', 5432],
          ['tcp', '2001:db8::5', 443],
          ['udp', '127.0.0.1', 53],
          ['tcp', '192.0.2.1', 22],
          ['udp', '192.0.2.1', 443],
        ],
        { ports: [5432], packetFilter: false },
      )
      expect(results).toEqual(['door', 'door', 'dns', 'ECONNREFUSED', 'ECONNREFUSED'])
      expect(slowest).toBeLessThan(500)
      expect(dialled(events)).toEqual(['192.0.2.1 5432', '2001:db8::5 443'])
      expect(event('open')?.['recordsRefusals']).toBe(false)
    },
  )

  forEachKind('P13 accepts up to its limit, resets the rest, and recovers afterwards', kind => {
    const { results, event } = inside(
      kind,
      [
        ['hold', '192.0.2.1', 443, 60],
        ['wait', 0.2],
        ['tcp', '192.0.2.1', 443],
      ],
      { connections: 40, quiet: true },
    )
    expect(results).toEqual([{ answered: 40, reset: 20 }, 'waited', 'door'])
    expect(event('counted')).toEqual({ event: 'counted', dialled: 41, rejected: 20 })
  })

  onLinux(
    'P13 serves one address more often than there are source ports',
    () => {
      const kind = kinds().at(-1) ?? { name: '', become: [] }
      const { results, event } = inside(kind, [['tcp', '192.0.2.1', 443, 30_000]], { quiet: true })
      expect(results).toEqual(['door'])
      expect(event('counted')?.['dialled']).toBe(30_000)
    },
    60_000,
  )

  onLinux('P6 the kernel received the same rules that nft would send', async () => {
    const door = await openDoor({ ports: [] })
    try {
      const [program = '', ...rest] = door.enter(['nft', 'list', 'ruleset'])
      const ours = spawnSync(program, rest, { encoding: 'utf8', env: SYSTEM })
      const load = 'nft -f - && nft list ruleset'
      const theirs = spawnSync('unshare', ['-rn', 'sh', '-c', load], {
        encoding: 'utf8',
        env: SYSTEM,
        input: RULES,
      })
      expect(ours.stdout).toContain('table inet pen {')
      expect(ours.stdout).toBe(theirs.stdout)
    } finally {
      door.close()
    }
  })

  onLinux('P6 a namespace that already has these rules is not taken for a new one', async () => {
    const container = spawn(
      'unshare',
      ['-rn', 'sh', '-c', 'nft add table inet pen && echo done && sleep 20'],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
        env: SYSTEM,
      },
    )
    try {
      await new Promise(resolve => container.stdout.once('data', resolve))
      const location = { kind: 'of-process', pid: container.pid ?? -1, userNamespace: true } as const
      const door = await openDoor({ ports: [443], location })
      expect(door.recordsRefusals).toBe(false)
      door.close()
    } finally {
      container.kill('SIGKILL')
    }
  })

  onLinux('P6 opens in the namespace of a container that was created but not started', async () => {
    const container = spawn('unshare', ['-Urn', 'sleep', '20'], { stdio: 'ignore' })
    const pid = container.pid ?? -1
    try {
      // unshare becomes sleep after it has written the user mapping.
      await until(() => readFileSync(`/proc/${pid}/comm`, 'latin1') === 'sleep\n')
      const door = await openDoor({
        ports: [443],
        location: { kind: 'of-process', pid, userNamespace: true },
      })
      const seen: string[] = []
      const hang = (socket: StreamSocket) => {
        socket.attach(silent)
        socket.write(Buffer.from('door'))
        socket.end()
      }
      await door.serve({
        dialled: (socket, { address, port }) => {
          seen.push(`${address} ${port}`)
          hang(socket)
        },
        proxied: hang,
        queryStream: hang,
        queries: () => {},
      })
      const steps = JSON.stringify([
        ['tcp', '192.0.2.1', 22],
        ['udp', '192.0.2.1', 123],
      ])
      const inside = ['-t', String(pid), '-U', '-n', '--preserve-credentials', '/usr/bin/python3']
      const dialling = spawn('nsenter', [...inside, client, steps], { stdio: 'ignore' })
      await new Promise(resolve => dialling.once('exit', resolve))
      const refused = await door.refusedDatagrams()
      door.close()
      expect(seen).toEqual(['192.0.2.1 22'])
      expect(refused.map(({ address, port }) => `${address} ${port}`)).toEqual(['192.0.2.1 123'])
    } finally {
      container.kill('SIGKILL')
    }
  })

  asRoot('P17 closes with the process that held it, even for a sandbox that outlives it', async () => {
    const kind = kinds()[0] ?? { name: '', become: [] }
    const [program, ...rest] = command(kind, {}, ['/bin/sleep', '20'])
    const holder = spawn(program, rest, { stdio: ['ignore', 'pipe', 'ignore'], env: SYSTEM })
    const line = await new Promise<string>(resolve =>
      holder.stdout.once('data', data => resolve(String(data))),
    )
    const { child } = JSON.parse(line) as { child: number }
    const dial = () =>
      spawnSync(
        'nsenter',
        [
          '-t',
          String(child),
          '-n',
          '/usr/bin/python3',
          client,
          JSON.stringify([
            ['tcp', '192.0.2.1', 443],
            ['udp', '127.0.0.1', 53],
          ]),
        ],
        { encoding: 'utf8' },
      )
        .stdout.trim()
        .split('\n')
        .map(text => (JSON.parse(text) as Answer).result)
    try {
      expect(dial()).toEqual(['door', 'dns'])
      const gone = new Promise(resolve => holder.once('exit', resolve))
      holder.kill('SIGKILL')
      await gone
      expect(dial()).toEqual(['ECONNREFUSED', 'ECONNREFUSED'])
    } finally {
      process.kill(child, 'SIGKILL')
    }
  })

  forEachKind(
    'P4 killed at any moment of its opening, it leaves no process and no namespace',
    async kind => {
      for (let moment = 0; moment < 20; moment++) {
        const before = namespaces()
        const [program, ...rest] = command(kind, {}, ['/bin/true'])
        const started = spawn(program, rest, { stdio: 'ignore', env: SYSTEM })
        const gone = new Promise(resolve => started.once('exit', resolve))
        await Bun.sleep(2 * moment)
        const mine = descendants(started.pid ?? -1)
        started.kill('SIGKILL')
        await gone
        const left = () =>
          [...namespaces()].filter(([pid]) => mine.has(pid) || (!before.has(pid) && isOurs(pid)))
        for (const end = Date.now() + 2000; left().length > 0 && Date.now() < end; ) await Bun.sleep(20)
        expect(left()).toEqual([])
      }
    },
    60_000,
  )
})
