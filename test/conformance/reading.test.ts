import { afterAll, beforeAll, expect } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { basename, join } from 'node:path'
import { type Box, quote } from './box.ts'
import { conformance, onTheHost } from './conformance.ts'
import { isRoot } from './launcher.ts'

/** A text that exists nowhere else. In a pattern it is written so that the search does not find itself. */
const WORD = `${process.pid}-${Date.now()}`
const CANARY = `CANARY-${WORD}`
const PATTERN = `CANAR[Y]-${WORD}`

/** Places of the host that no policy of these tests grants, each with the canary in it. */
function plant(box: Box): string[] {
  const shared = ['/tmp', '/var/tmp', '/dev/shm', ...(isRoot ? ['/root', '/srv', '/mnt'] : [])]
  const outside = shared.map(dir => box.elsewhere(`${dir}/${basename(box.root)}-canary`))
  return [
    ...outside.map(path => box.file(path, CANARY)),
    ...[
      '.ssh/id_ed25519',
      '.aws/credentials',
      '.netrc',
      '.npmrc',
      '.config/gh/hosts.yml',
      '.bash_history',
      'other/.env',
    ].map(path => box.file(join(box.home, path), CANARY)),
    box.file(join(box.home, '.pen/canary'), CANARY),
    box.file(join(box.home, 'project-evil/x'), CANARY),
  ]
}

/** Everything readable below /, apart from the system's programs, and all of /proc. */
const SEARCH = `
  for top in /* /.[!.]* /dev/shm; do case $top in /usr|/opt|/proc|/nix|/gnu|/dev) ;; *) find "$top" -type f -exec grep -sl '${PATTERN}' {} + ;; esac; done
  for p in /proc/[0-9]* /proc/self /proc/thread-self /proc/[0-9]*/task/[0-9]*; do
    # Threads of a guest's own kernel have no command line. They are many.
    words=; read -r words <$p/cmdline; [ -n "$words" ] || continue
    for f in environ cmdline status maps mountinfo comm stack; do grep -sl '${PATTERN}' $p/$f; done
    ls -l $p/fd $p/cwd $p/root $p/exe $p/map_files 2>/dev/null | grep '${PATTERN}'
    for f in $p/fd/*; do [ "$f" = "$p/fd/1" ] || timeout 0.2 head -c 100000 "$f" 2>/dev/null </dev/null | grep -sl '${PATTERN}'; done
  done
  grep -rsl '${PATTERN}' /proc/net /proc/sys/kernel /proc/sysvipc /proc/keys 2>/dev/null
  true`

conformance(
  'P1 no canary of the host is found anywhere inside, and the one in the project is',
  async box => {
    const places = plant(box)
    box.file('inside.txt', CANARY)
    const { stdout } = await box.sh(SEARCH, { env: { SECRET_TOKEN: CANARY, AWS_SECRET_ACCESS_KEY: CANARY } })
    expect(stdout.trim().split('\n')).toEqual([join(box.project, 'inside.txt')])
    expect((await box.sh(`cat ${places.map(quote).join(' ')}`)).stdout).toBe('')
  },
  { timeout: 60_000, review: 'all' },
)

conformance(
  'P1 links, dots and /proc lead to nothing outside, and to what is inside',
  async box => {
    const [secret = ''] = plant(box)
    box.file('own', 'OWN')
    box.host(`ln -s ${quote(secret)} link; ln -s ../.ssh keys; ln -s / root; ln -s own good`)
    const target = secret.slice(1)
    const { stdout } = await box.sh(`
    for try in link keys/id_ed25519 root/${target} ../.ssh/id_ed25519 ./../other/.env //${target} \
      /proc/self/root/${target} /proc/1/root/${target} /proc/self/cwd/../.ssh/id_ed25519 \
      /proc/1/cwd/../../../${target} /proc/self/task/*/root/${target} /dev/fd/../../../${target} \
      ../project-evil/x ../PROJECT/own; do cat "$try"; done 2>/dev/null
    cat good /proc/self/cwd/own root/${quote(box.project)}/own`)
    expect(stdout).toBe('OWNOWNOWN')
  },
  { review: 'ordinary' },
)

conformance('P1 no process of the host is visible, and one of the sandbox is', async box => {
  const seconds = `60.${process.pid}`
  const outside = Bun.spawn(['sleep', seconds])
  // A child is called `sleep` a moment after it was forked. Threads of a guest's kernel have no command line.
  const { stdout } = await box.sh(
    `sleep 60 & until pidof sleep > /dev/null; do sleep 0; done; grep -sl . /proc/[0-9]*/cmdline | wc -l; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep ${seconds.replace('.', '[.]')}'; pidof sleep | wc -w`,
  )
  outside.kill()
  const [count = '', ...seen] = stdout.trim().split('\n')
  expect(Number(count)).toBeLessThan(8)
  expect(seen).toEqual(['0', '1'])
})

conformance('P1 a read grant shows that path alone, and read-only', async box => {
  box.file(join(box.home, 'data/in/file'), 'DATA')
  box.file(join(box.home, 'data/out'), CANARY)
  const { stdout } = await box.sh(
    'cat ../data/in/file; cat ../data/out; ls ../data; echo x > ../data/in/new',
    {
      flags: ['--read', join(box.home, 'data/in')],
    },
  )
  expect(stdout).toBe('DATAin\n')
  expect(box.host('ls ../data/in')).toBe('file\n')
})

let server: Server
let abstract: Server
const NAME = `pen-conformance-${WORD}`
beforeAll(async () => {
  const serve = (path: string) =>
    new Promise<Server>(resolve => {
      const made = createServer(socket => socket.on('error', () => {}).end(CANARY)).listen(path, () =>
        resolve(made),
      )
    })
  server = await serve(`/var/tmp/${NAME}`)
  abstract = await serve(`\0${NAME}`)
})
afterAll(() => {
  server.close()
  abstract.close()
})

conformance('P1 sockets of the host are reached by no name, and the sandbox’s own are', async box => {
  const { stdout } = await box.run([
    '/usr/bin/python3',
    '-c',
    `
import socket, os
def ask(name):
    try:
        s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(name); print(s.recv(100))
    except OSError as e: print('refused')
ask('/var/tmp/${NAME}'); ask('\\0${NAME}'); ask('/proc/1/root/var/tmp/${NAME}')
own = socket.socket(socket.AF_UNIX); own.bind('/tmp/own'); own.listen()
if os.fork() == 0: own.accept()[0].send(b'own'); os._exit(0)
ask('/tmp/own')`,
  ])
  expect(stdout).toBe("refused\nrefused\nrefused\nb'own'\n")
})

conformance(
  'P1 a place that another sandbox swaps for a link during the start never shows the link’s target',
  async box => {
    box.file(join(box.home, 'secret/key'), 'SECRET')
    box.file('.vscode/key', 'own\n')
    box.host('ln -s ../secret x')
    const swap = `import ctypes, sys, time
call = ctypes.CDLL(None).renameat2
end = time.time() + 20
while time.time() < end:
    call(-100, b'.vscode', -100, b'x', 2)
    time.sleep(0.0003)`
    const [program = '', ...rest] = [...box.launcher.who.become, '/usr/bin/python3', '-c', swap]
    const swapper = Bun.spawn([program, ...rest], { cwd: box.project, stdio: ['ignore', 'ignore', 'ignore'] })
    // A container takes ten times as long to start as bubblewrap, so there are ten times as many swaps.
    const rounds = box.launcher.isolation === 'container' ? 6 : 25
    let started = 0
    try {
      for (let i = 0; i < rounds; i++) {
        const { stdout } = await box.sh('cat .vscode/key x/key; echo ran')
        expect(stdout).not.toContain('SECRET')
        if (stdout.includes('ran')) started++
        box.host(
          '[ -d .vscode ] || [ -d x ] || { rm -f x .vscode; mkdir .vscode; ln -s ../secret x; } || true',
        )
      }
    } finally {
      swapper.kill()
    }
    expect(started).toBeGreaterThan(0)
  },
)

onTheHost(
  'P1 a file of /etc is shown when a flag names it, and only then',
  async box => {
    const dir = box.elsewhere(`/etc/pen-test-${process.pid}`)
    const key = join(dir, 'key.pem')
    box.file(key, CANARY, 0o600)
    box.file(join(dir, 'other'), CANARY, 0o600)
    const show = async (...flags: string[]) =>
      (await box.sh(`cat ${dir}/key.pem ${dir}/other`, { flags })).stdout
    expect(await show()).toBe('')
    expect(await show('--read', key)).toBe(CANARY)
    expect(await show('--read', dir)).toBe(`${CANARY}${CANARY}`)
  },
  { only: () => isRoot },
)

onTheHost('P20 a missing path and an unknown gap stop the run, each with its fix', async box => {
  for (const flag of ['--read', '--write']) {
    const { code, stdout, stderr } = await box.sh('echo ran', { flags: [flag, '/no/such/place'] })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toStartWith('pen: MOUNT_SOURCE: /no/such/place does not exist\n')
  }
  const gap = await box.sh('echo ran', { flags: ['--accept-gap', 'proxy-onyl'] })
  expect([gap.code, gap.stdout]).toEqual([2, ''])
  expect(gap.stderr).toContain('fix: did you mean proxy-only?')
  const made = await box.sh('echo ran', {
    flags: ['--write', 'new', '--accept-gap', 'proxy-only'],
  })
  expect(made.stdout).toBe('ran\n')
})
