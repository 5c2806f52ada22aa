/** git over SSH from a sandbox, with keys that only the host's agent has, against real servers. */
import { expect } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from '../conformance/box.ts'
import { until } from '../until.ts'
import { exchange, freePort } from './forwarded.ts'
import { lifecycleTest, type ProjectSandbox } from './project-sandbox.ts'

/** Runs to its end as the user. */
function run(box: Box, words: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const [program = '', ...rest] = [...box.launcher.who.become, ...words]
  const { status, stdout, stderr } = spawnSync(program, rest, { encoding: 'utf8', env: box.env(env) })
  expect([status, stderr.replaceAll(/^Identity added.*\n/gm, '')]).toEqual([0, ''])
  return stdout
}

interface Key {
  readonly file: string
  readonly fingerprint: string
}

function newKey(box: Box, name: string): Key {
  const file = join(box.directory(join(box.home, 'keys'), 0o700), name)
  run(box, ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', file])
  const [, fingerprint = ''] = run(box, ['ssh-keygen', '-lf', file]).split(' ')
  return { file, fingerprint }
}

/** A server for the user's own account. Returns its port. */
async function serve(
  box: Box,
  hostKey: Key,
  authorized: string,
): Promise<{ readonly port: number; stop(): void }> {
  const port = await freePort()
  if (box.launcher.who.uid === 0) mkdirSync('/run/sshd', { recursive: true })
  const settings = [
    `ListenAddress 127.0.0.1:${port}`,
    `HostKey ${hostKey.file}`,
    `AuthorizedKeysFile ${authorized}`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
  ]
  const config = box.file(join(box.home, `sshd-${port}`), `${settings.join('\n')}\n`)
  const [program = '', ...rest] = [...box.launcher.who.become, '/usr/sbin/sshd', '-D', '-f', config]
  const child = spawn(program, rest, { stdio: 'ignore' })
  await until(async () => (await exchange(port, '')).startsWith('SSH-2.0'), 10_000)
  return { port, stop: () => void child.kill('SIGKILL') }
}

const recorded = (here: ProjectSandbox, kind: string) =>
  here.audit().filter(record => record['kind'] === kind)

lifecycleTest(
  'P22 git pushes over SSH and signs with granted keys of the host’s agent, for granted servers',
  async here => {
    const { box } = here
    const [granted, other, hostKey, strange] = ['granted', 'other', 'host', 'strange'].map(name =>
      newKey(box, name),
    ) as [Key, Key, Key, Key]
    const authorized = box.file(
      join(box.home, 'authorized'),
      [granted, other].map(({ file }) => readFileSync(`${file}.pub`, 'utf8')).join(''),
    )
    const socket = join(box.home, 'agent')
    const [program = '', ...rest] = [...box.launcher.who.become, 'ssh-agent', '-D', '-a', socket]
    const agent = spawn(program, rest, { stdio: 'ignore' })
    const servers = [await serve(box, hostKey, authorized), await serve(box, strange, authorized)]
    try {
      const env = { SSH_AUTH_SOCK: socket }
      await until(
        () => spawnSync('ssh-add', ['-l'], { env: { ...process.env, ...env } }).status === 1,
        10_000,
      )
      run(box, ['ssh-add', '-q', granted.file, other.file], env)
      const [good = 0, bad = 0] = servers.map(({ port }) => port)
      const line = (port: number, { file }: Key): string =>
        `[host.pen.internal]:${port} ${readFileSync(`${file}.pub`, 'utf8')}`
      box.directory(join(box.home, '.ssh'), 0o700)
      box.file(join(box.home, '.ssh/known_hosts'), `${line(good, hostKey)}${line(bad, strange)}`, 0o600)
      run(box, ['git', 'init', '-q', '--bare', '-b', 'main', join(box.home, 'remote.git')])
      const hosts = [good, bad].map(port => `host.pen.internal:${port}`)
      here.configure(
        JSON.stringify({
          version: 1,
          profile: 'coding',
          backend: 'process',
          network: { tcp: hosts },
          ssh: { agent: { keys: [granted.fingerprint], hosts: [hosts[0]], sign: ['git'] } },
        }),
      )
      const missing = await here.start(['start', '--detach']).ended
      expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('SSH_AUTH_SOCK is not set')])
      expect(await here.start(['start', '--detach'], { env }).ended).toMatchObject({ code: 0 })

      const listed = await here.sh('ssh-add -l')
      expect(listed.stdout).toBe(`256 ${granted.fingerprint} granted (ED25519)\n`)
      const user = run(box, ['id', '-un']).trim()
      const url = (port: number): string => `ssh://${user}@host.pen.internal:${port}${box.home}/remote.git`
      const quiet = 'export GIT_CONFIG_GLOBAL=/dev/null; git config --global --list >/dev/null;'
      const push = `${quiet} cd /tmp && git clone -q ${url(good)} work 2>/tmp/note; cd work && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git push -q origin HEAD:main && git fetch -q`
      expect(await here.sh(push)).toMatchObject({ code: 0, stderr: '' })
      expect(run(box, ['git', '-C', join(box.home, 'remote.git'), 'log', '--format=%s', 'main'])).toBe(
        'one\n',
      )
      const target = { key: granted.fingerprint, target: hosts[0] }
      expect(recorded(here, 'agent-signed')).toMatchObject([target, target, target])

      // A server that was not named, whose key the user knows, and who would let the key in.
      const ssh =
        '-o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'
      const refused = await here.sh(`ssh ${ssh} -p ${bad} ${user}@host.pen.internal true`)
      expect([refused.code, refused.stderr]).toEqual([255, expect.stringContaining('Permission denied')])
      expect(refused.stderr).toContain('this server is not one of the granted hosts')
      expect((await here.sh(`ssh ${ssh} -p ${good} ${user}@host.pen.internal true`)).code).toBe(0)

      // A granted key signs commits, and no files; a key that was not granted signs nothing.
      const keys = [granted, other].map(({ file }, at) => {
        box.file(`key${at}.pub`, readFileSync(`${file}.pub`, 'utf8'))
        return join(box.project, `key${at}.pub`)
      })
      const commit = (key = '') =>
        `${quiet} cd /tmp/work && git -c user.name=a -c user.email=a@b -c gpg.format=ssh -c user.signingkey=${key} commit -q -S --allow-empty -m signed && git cat-file commit HEAD | grep -c "BEGIN SSH SIGNATURE"`
      expect(await here.sh(commit(keys[0]))).toMatchObject({ code: 0, stdout: '1\n' })
      expect((await here.sh(commit(keys[1]))).code).not.toBe(0)
      expect((await here.sh(`echo x | ssh-keygen -q -Y sign -n file -f ${keys[0]}`)).code).not.toBe(0)
      expect(recorded(here, 'agent-signed').at(-1)).toMatchObject({ target: 'signature: git' })

      const held = run(box, ['ssh-add', '-l'], env)
      const script = `ssh-add -D; ssh-add -d ${keys[0]}; ssh-keygen -q -t ed25519 -N '' -f /tmp/k; ssh-add /tmp/k; echo p | ssh-add -x`
      await here.sh(script)
      expect(run(box, ['ssh-add', '-l'], env)).toBe(held)
      // Bytes that are no message end the connection, and the next one works.
      const odd = `import os, socket\ns = socket.socket(socket.AF_UNIX); s.connect(os.environ["SSH_AUTH_SOCK"])\ns.sendall(b"\\xff" * 65536)\nprint(s.recv(10))`
      expect((await here.start(['exec', '--', 'python3', '-c', odd]).ended).stdout).toBe("b''\n")
      expect((await here.sh('ssh-add -l')).stdout).toBe(listed.stdout)
    } finally {
      agent.kill('SIGKILL')
      for (const server of servers) server.stop()
    }
  },
)
