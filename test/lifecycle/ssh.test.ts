/** SSH into sandboxes, by OpenSSH's own client. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isRoot, PEN } from '../conformance/launcher.ts'
import { until } from '../until.ts'
import { exchange, freePort, serveInside } from './forwarded.ts'
import { lifecycleTest, type ProjectSandbox, START } from './project-sandbox.ts'
import { provesEveryday, SshClient } from './ssh-client.ts'

const STRANGER = 54_321
const SIZE = 10_000_000

/** Processes that serve an SSH connection of this home. */
const serving = ({ box }: ProjectSandbox): string[] =>
  readdirSync('/proc').filter(pid => {
    try {
      const read = (file: string): string[] => readFileSync(`/proc/${pid}/${file}`, 'latin1').split('\0')
      return read('cmdline').includes('__ssh') && read('environ').includes(`HOME=${box.home}`)
    } catch {
      return false
    }
  })

lifecycleTest('ssh, sftp, scp and rsync of the host work in a sandbox without any of them', async here => {
  await here.pen(...START)
  const client = await SshClient.of(here)
  await provesEveryday(client)
  const { box } = here
  const tree = box.directory(join(box.home, 'tree'))
  box.file(join(tree, 'a/b'), 'leaf')
  const remote = ['rsync', '-a', '-e', `ssh -F ${client.config}`]
  expect(await client.run(...remote, tree, `${client.host}:`)).toMatchObject({ code: 0, stderr: '' })
  expect(await client.run(...remote, `${client.host}:tree`, join(box.home, 'back'))).toMatchObject({
    code: 0,
  })
  expect(readFileSync(join(box.home, 'back/tree/a/b'), 'utf8')).toBe('leaf')

  if (box.launcher.who.uid === 0) return
  const { config, host } = client
  const there = await client.run(
    'sh',
    '-c',
    `head -c ${SIZE} /dev/zero | ssh -F ${config} ${host} cat | wc -c`,
  )
  expect(there.stdout.trim()).toBe(String(SIZE))
})

lifecycleTest(
  'P15 a shell over SSH has a terminal, which the sandbox cannot drive',
  async here => {
    await here.pen(...START)
    const client = await SshClient.of(here)
    const env = { TERM: 'xterm-256color', COLORTERM: 'truecolor', SECRET: 'value', LC_SECRET: 'value' }
    const flags = ['-tt', '-o', 'SendEnv=SECRET LC_* COLORTERM', '-A', '-X']
    const script = `stty size; pwd; printf 'clip\\033]52;c;c2VjcmV0\\007board\\n'; env; exit 3\n`
    const said = await client.ssh([], { stdin: script, env, flags })
    expect([said.code, said.stdout]).toEqual([3, expect.stringContaining(`\r\n${here.box.project}\r\n`)])
    expect(said.stdout).toContain('clipboard\r\n')
    expect(said.stdout).toContain('TERM=xterm-256color\r\n')
    expect(said.stdout).toContain('COLORTERM=truecolor\r\n')
    // No variable of the host, no agent and no display, although the client asks for all.
    expect(said.stdout).not.toMatch(/SECRET=|SSH_AUTH_SOCK|DISPLAY/)
    expect(here.audit().filter(({ kind }) => kind === 'exec-start')).toHaveLength(1)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P10 ssh -L reaches servers of the sandbox and nothing else, until pen stop',
  async here => {
    await here.pen(...START)
    const client = await SshClient.of(here)
    const server = await serveInside(here, 3000)
    const [good, other, socket] = [await freePort(), await freePort(), join(here.box.home, 'master')]
    const flags = ['-M', '-S', socket, '-L', `${good}:localhost:3000`, '-L', `${other}:192.0.2.1:80`]
    const master = client.begin([], { flags: [...flags, '-N'], timeoutMs: 60_000 })
    await until(() => existsSync(socket), 10_000)
    expect(await exchange(good, 'x')).toBe('hello x')
    expect(await exchange(other, 'x')).toMatch(/^(ECONNRESET)?$/)
    // A second session over the first connection.
    const over = ['-S', socket, '-o', 'ProxyCommand=false']
    expect(await client.ssh(['echo over'], { flags: over })).toMatchObject({ code: 0, stdout: 'over\n' })
    // One that breaks ends its command, and no other.
    const broken = client.begin(['echo up; sleep 1234'], { flags: over })
    await broken.printed('up')
    broken.child.kill('SIGKILL')
    await until(async () => (await here.sh('pgrep -f "sleep 123[4]"')).code === 1, 5000)
    expect(await client.ssh(['echo over'], { flags: over })).toMatchObject({ code: 0, stdout: 'over\n' })
    const back = await client.ssh(['true'], {
      flags: ['-S', 'none', '-o', 'ExitOnForwardFailure=yes', '-R', '0:x:1'],
    })
    expect(back.code).toBe(255)
    expect(serving(here)).toHaveLength(1)
    const running = client.begin(['sleep 60'], { flags: ['-S', 'none'] })
    await until(() => serving(here).length === 2, 10_000)

    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    expect((await running.ended).code).not.toBe(0)
    expect((await master.ended).code).toBe(255)
    await server.ended
    expect(await exchange(good, 'x')).toBe('ECONNREFUSED')
    await until(() => serving(here).length === 0, 5000)
    expect(here.leftovers()).toEqual([])
    // An editor that reconnects does not bring the sandbox back without its flags; pen ssh does.
    const late = await client.ssh(['true'])
    expect([late.code, late.stderr]).toEqual([
      255,
      expect.stringContaining('pen: STATE: the sandbox is not running'),
    ])
    expect((await here.pen('ssh', '--', 'true')).code).toBe(0)
  },
  { users: 'ordinary' },
)

lifecycleTest('P25 a connection after a crash brings the sandbox back with its flags', async here => {
  await here.pen(...START, '--env', 'MARK=kept')
  const client = await SshClient.of(here)
  process.kill(here.supervisor() ?? 0, 'SIGKILL')
  const said = await client.ssh(['echo $MARK'])
  expect(said).toMatchObject({ code: 0, stdout: 'kept\n' })
  expect(said.stderr).toContain('started again')
  const named = await here.pen('start', '--detach', '--backend', 'process', '--offline', '--name', 'two')
  expect(named).toMatchObject({ code: 0 })
  const two = await SshClient.of(here, '--name', 'two')
  expect(two.host).toBe(`${client.host}-two`)
  expect(await two.ssh(['echo "$MARK."'])).toMatchObject({ code: 0, stdout: '.\n' })
  expect((await here.pen('ssh', 'two', '--', 'exit 5')).code).toBe(5)
  await here.pen('rm', '--yes', '--name', 'two')
  expect(readFileSync(client.config, 'utf8')).not.toContain(two.host)
  expect(readFileSync(client.config, 'utf8')).toContain(client.host)
})

lifecycleTest('P21 keys stay outside, and another user, key or host key gets nowhere', async here => {
  await here.pen(...START)
  const client = await SshClient.of(here)
  const keys = join(here.stateDir, 'ssh')
  for (const file of readdirSync(keys)) expect(statSync(join(keys, file)).mode & 0o777).toBe(0o600)
  expect((await client.ssh([`ls ${keys}`])).code).not.toBe(0)
  const { box } = here
  const wrong = join(box.root, 'wrong')
  expect(spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', wrong]).status).toBe(0)
  const key = box.file(join(box.home, 'wrong'), readFileSync(wrong, 'utf8'), 0o600)
  const refused = await client.ssh(['true'], {
    flags: ['-i', key, '-o', `IdentityFile=${key}`, '-F', 'none'],
  })
  expect(refused.code).toBe(255)
  const line = `${here.stateDir.split('/').at(-1)} ${readFileSync(`${wrong}.pub`, 'utf8')}`
  const hosts = box.file(join(box.root, 'hosts'), line)
  const other = await client.ssh(['true'], { flags: ['-o', `UserKnownHostsFile=${hosts}`] })
  expect([other.code, other.stderr]).toEqual([255, expect.stringContaining('Host key verification failed')])
  expect((await client.ssh(['true'])).code).toBe(0)
  if (!isRoot) return
  const words = [`--reuid=${STRANGER}`, '--regid=0', '--clear-groups', 'env', `HOME=${box.home}`]
  const id = here.stateDir.split('/').at(-1) ?? ''
  const stranger = spawnSync('setpriv', [...words, PEN, '__ssh', id], { encoding: 'utf8' })
  expect([stranger.status, stranger.stdout]).toEqual([2, ''])
  expect(stranger.stderr).toContain('could not be opened (EACCES)')
})

lifecycleTest(
  'P19 ~/.ssh/config has one line of pen’s on request, and is restored byte for byte',
  async here => {
    const { box } = here
    const file = join(box.home, '.ssh/config')
    expect(await here.pen('ssh-config', '--install')).toMatchObject({ code: 0 })
    const line = `Include "${box.home}/.pen/ssh/config"\n`
    expect(readFileSync(file, 'utf8')).toBe(line)
    expect(await here.pen('ssh-config', '--install')).toMatchObject({ code: 0 })
    expect(readFileSync(file, 'utf8')).toBe(line)
    expect(await here.pen('ssh-config', '--remove')).toMatchObject({ code: 0 })
    expect(existsSync(join(box.home, '.ssh'))).toBe(false)

    // A link into a repository of settings, with bytes that are no UTF-8, without a line end.
    const settings = 'Host *\r\n  User ü\xff'
    const target = box.file(join(box.home, 'dotfiles/ssh'), settings, 0o640)
    mkdirSync(join(box.home, '.ssh'), { mode: 0o700 })
    symlinkSync(target, file)
    const { uid, gid } = box.launcher.who
    spawnSync('chown', ['-hR', `${uid}:${gid}`, join(box.home, '.ssh')])
    const before = readFileSync(target)
    expect(await here.pen('ssh-config', '--install')).toMatchObject({ code: 0 })
    expect(readFileSync(target)).toEqual(Buffer.concat([Buffer.from(line), before]))
    const { things } = JSON.parse((await here.pen('uninstall', '--dry-run', '--json')).stdout)
    expect(things).toContainEqual({ kind: 'ssh-include', name: target })
    expect(await here.pen('uninstall', '--yes')).toMatchObject({ code: 0 })
    expect(readFileSync(target)).toEqual(before)
    expect(statSync(target).mode & 0o777).toBe(0o640)
    expect(existsSync(join(box.home, '.pen'))).toBe(false)
  },
  { users: 'ordinary' },
)
