import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { quote } from './box.ts'
import { conformance } from './conformance.ts'
import { SLOWER } from './launcher.ts'

conformance('P15 only descriptors 0, 1 and 2 cross, however many pen was started with', async box => {
  const { stdout } = await box.run(
    [
      '/bin/sh',
      '-c',
      'ls /proc/self/fd | tr "\\n" " "; for p in 1 2; do ls -l /proc/$p/fd | grep -c /etc; done; cat <&9; cat /proc/self/fd/101/passwd',
    ],
    { through: 'exec bash -c \'exec "$@" 9</etc/hostname 20</etc 101</etc 251</etc\' bash "$@"' },
  )
  // 3 is the directory that ls itself reads.
  expect(stdout).toBe('0 1 2 3 0\n0\n')
})

conformance('P15 a file as stdin is read-only and never reopened; as stdout it is write-only', async box => {
  const input = box.file(join(box.home, 'input'), 'INPUT\n')
  const output = box.file(join(box.home, 'output'), 'EARLIER\n')
  await box.sh(
    `cat; cat /proc/1/fd/0; echo evil > /proc/self/fd/0; echo evil >> /dev/stdin
     timeout 0.2 grep -c EARLIER /proc/self/fd/1 >&2; : > /proc/self/fd/1; echo last; echo err >&2`,
    { through: `"$@" < ${quote(input)} >> ${quote(output)} 2>/dev/null` },
  )
  expect(readFileSync(input, 'utf8')).toBe('INPUT\n')
  expect(readFileSync(output, 'utf8')).toBe('EARLIER\nINPUT\nlast\n')
})

conformance('P15 two streams to one file keep their order', async box => {
  const output = box.file(join(box.home, 'output'), '')
  await box.sh('for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done', {
    through: `"$@" > ${quote(output)} 2>&1`,
  })
  expect(readFileSync(output, 'utf8').replace(/^pen: .*\n/gm, '')).toBe(
    [1, 2, 3, 4, 5].map(i => `out ${i}\nerr ${i}\n`).join(''),
  )
})

conformance('P15 a directory does not cross: pen refuses it as stdin', async box => {
  const ran = await box.sh('ls /proc/self/fd/0/', { through: '"$@" < /' })
  expect([ran.code, ran.stdout]).toEqual([2, ''])
  expect(ran.stderr).toContain('descriptor 0 is a directory')
})

conformance(
  'P15 a TCP connection as stdin and stdout carries bytes both ways, and reaches no other host service',
  async box => {
    let victim = 0
    const service = createServer(() => victim++).listen(0, '127.0.0.1')
    let heard = ''
    const peer = createServer(socket => {
      socket.on('data', data => {
        heard += data
      })
      socket.end('hello\n')
    }).listen(0, '127.0.0.1')
    try {
      // Disconnects the socket and connects it again: that would happen in the network where the socket was
      // made.
      const script = `import ctypes, struct, sys
print(sys.stdin.readline().strip(), flush=True)
call = ctypes.CDLL(None).connect
for fd in (0, 1):
    call(fd, struct.pack('H14x', 0), 16)
    call(fd, struct.pack('=H', 2) + struct.pack('>H', ${portOf(service)}) + bytes([127, 0, 0, 1]) + bytes(8), 16)`
      const { code } = await box.run(['python3', '-c', script], {
        through: `exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/${portOf(peer)}; exec "$@" <&3 >&3' bash "$@"`,
      })
      expect([code, heard, victim]).toEqual([0, 'hello\n', 0])
    } finally {
      service.close()
      peer.close()
    }
  },
)

conformance('P15 closed descriptors stay harmless', async box => {
  const file = join(box.project, 'seen')
  for (const closed of ['<&-', '>&-', '2>&-', '<&- >&- 2>&-']) {
    const { code } = await box.sh('ls -l /proc/self/fd > seen; exit 3', { through: `"$@" ${closed}` })
    expect([closed, code]).toEqual([closed, 3])
    const links = [...readFileSync(file, 'utf8').matchAll(/ -> (\S+)/g)].map(([, to]) => to ?? '')
    expect([closed, links.filter(to => to.includes(box.home) && !to.startsWith(box.project))]).toEqual([
      closed,
      [],
    ])
  }
})

conformance('P15 stdin ends, and many megabytes go through, as pipes and as files', async box => {
  expect((await box.run(['cat'], { stdin: '' })).stdout).toBe('')
  expect((await box.run(['cat'], { stdin: 'a\nb' })).stdout).toBe('a\nb')
  const sum = 'cksum | cut -d" " -f1,2'
  const zeros = `head -c ${100_000_000 / SLOWER} /dev/zero`
  const through = `${zeros} | "$@" | ${sum}`
  const zero = await box.run(['cat'], { through })
  expect(zero.stdout).toBe(box.host(`${zeros} | ${sum}`))
  box.host(`${zeros} > ../big`)
  await box.run(['cat'], { through: '"$@" < ../big > ../copy' })
  expect(box.host('cmp ../big ../copy && echo same')).toBe('same\n')
})

conformance('P15 /dev/stdin, /dev/stdout and /dev/stderr can be opened inside', async box => {
  const { stdout, stderr } = await box.sh('cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr', {
    stdin: 'in\n',
    through: 'cat | "$@" 2>../err | cat; cat ../err >&2',
  })
  expect(stdout).toBe('in\nout\n')
  expect(stderr).toContain('err\n')
})

conformance('P15 no host variable crosses but terminal, locale and granted ones', async box => {
  const { stdout } = await box.run(['env'], {
    flags: ['--env', 'GIVEN=1', '--env', 'PASSED'],
    env: {
      SECRET_TOKEN: 'x',
      AWS_PROFILE: 'x',
      SSH_AUTH_SOCK: '/x',
      DBUS_SESSION_BUS_ADDRESS: 'x',
      XDG_RUNTIME_DIR: '/run/user/0',
      LD_PRELOAD: '',
      NODE_OPTIONS: '--x',
      BASH_ENV: '/x',
      http_proxy: 'http://u:p@proxy.example.com',
      HTTPS_PROXY: 'x',
      npm_config_token: 'x',
      EDITOR: 'vi',
      TERM: 'xterm',
      LC_ALL: 'C.UTF-8',
      TZ: '../../etc/shadow',
      PASSED: 'yes',
      BUN_OPTIONS: '--x',
    },
  })
  const names = stdout
    .trim()
    .split('\n')
    // Set where the host has authorities of its own, as a path that everyone may read.
    .filter(line => !line.endsWith('/ca-certificates.crt'))
    .map(line => line.split('=')[0] ?? '')
  const expected = [
    'AGENT_IN_SANDBOX',
    'GIVEN',
    'HOME',
    'LANG',
    'LC_ALL',
    'LOGNAME',
    'PASSED',
    'PATH',
    'PWD',
    'SHELL',
    'TERM',
    'TMPDIR',
    'USER',
    'XDG_CACHE_HOME',
    'npm_config_cache',
    'npm_config_fetch_retry_factor',
    'npm_config_fetch_retry_mintimeout',
  ]
  // pen's exec daemon uses this number to find what a command has started.
  expect(names.filter(name => name !== 'PEN_EXEC').sort()).toEqual(expected)
  expect(stdout).toContain('HOME=/home/agent\n')
  expect(stdout).toContain('PASSED=yes\n')
})

const portOf = (server: Server): number => (server.address() as AddressInfo).port
