import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'
import { isRoot } from './launcher.ts'

/** pen's note for agents is in every sandbox. */
const NOT_PENS = '! -name AGENTS.md ! -name CLAUDE.md'
/** An unrelated user. */
const STRANGER = 64_399
const asStranger = (script: string) =>
  spawnSync(
    'setpriv',
    [`--reuid=${STRANGER}`, `--regid=${STRANGER}`, '--clear-groups', '/bin/sh', '-c', script],
    {
      encoding: 'utf8',
    },
  )

conformance('P21 nothing of pen’s state can be read or entered by others, whatever the umask', async box => {
  await box.sh('true', { through: 'umask 000; exec "$@"' })
  const open: string[] = []
  const walk = (dir: string, inside: boolean) => {
    for (const name of readdirSync(dir)) {
      const path = join(dir, name)
      const { mode } = lstatSync(path)
      // Content below a closed directory is closed. The copy of /etc has ordinary modes, because the sandbox
      // shows it.
      if (!inside && (mode & 0o077) !== 0) open.push(path)
      if ((mode & 0o170000) === 0o040000) walk(path, inside || (mode & 0o077) === 0)
    }
  }
  walk(box.home, true)
  expect(lstatSync(join(box.home, '.pen')).mode & 0o777).toBe(0o700)
  walk(join(box.home, '.pen'), false)
  expect(open).toEqual([])
})

conformance(
  'P21 a stranger can neither read, signal, trace nor enter a running sandbox; its owner can see it',
  async box => {
    const run = box.start(['/bin/sh', '-c', 'echo secret > /tmp/secret; echo up; sleep 30'], {
      through: 'exec "$@"',
    })
    await run.printed('up')
    const pids = spawnSync('pgrep', ['-f', box.root], { encoding: 'utf8' }).stdout
    const all = spawnSync('sh', ['-c', `for p in $(pgrep -x bwrap); do echo $p; done`], {
      encoding: 'utf8',
    }).stdout
    const mine = `${pids} ${all}`.split(/\s+/).filter(Boolean)
    const tries = asStranger(`
      cat ${box.home}/.pen/sandboxes/*/audit/* ${box.home}/.pen/cache/* 2>/dev/null
      for p in ${mine.join(' ')} ${run.child.pid}; do
        kill -0 $p 2>/dev/null && echo "signal $p"; cat /proc/$p/environ /proc/$p/root/tmp/secret 2>/dev/null
        ls /proc/$p/fd/ /proc/$p/cwd/ 2>/dev/null; nsenter -t $p -U -m true 2>/dev/null && echo "entered $p"
      done`)
    expect(tries.stdout).toBe('')
    expect(spawnSync('cat', [`/proc/${run.child.pid}/environ`], { encoding: 'utf8' }).stdout).toContain(
      'HOME=',
    )
    run.child.kill('SIGKILL')
    await run.ended
  },
  { only: () => isRoot },
)

conformance(
  'P21 a live config that others may write, or that others own, is refused',
  async box => {
    await box.sh('true')
    const [sandbox = ''] = readdirSync(join(box.home, '.pen/sandboxes'))
    const config = join(box.home, '.pen/sandboxes', sandbox, 'config.json')
    const { uid, gid } = box.launcher.who
    const set = (mode: number, owner: readonly [number, number]) => {
      writeFileSync(config, '{"version":1}')
      chmodSync(config, mode)
      chownSync(config, ...owner)
    }
    set(0o600, [uid, gid])
    expect((await box.sh('exit 5')).code).toBe(5)
    set(0o666, [uid, gid])
    expect((await box.sh('echo ran > mark')).code).toBe(2)
    set(0o644, [STRANGER, STRANGER])
    expect((await box.sh('echo ran > mark')).code).toBe(2)
    expect(readdirSync(box.project)).toEqual([])
  },
  { only: () => isRoot },
)

conformance('P21 two sandboxes do not see each other', async box => {
  const other = box.directory(join(box.home, 'other'))
  const first = box.start(
    ['/bin/sh', '-c', 'echo s > /tmp/mine; echo s > /dev/shm/mine; echo up; sleep 30'],
    {
      through: 'exec "$@"',
    },
  )
  await first.printed('up')
  const { stdout } = await box.sh(
    `find /tmp /dev/shm /home/agent ${box.project} -type f ${NOT_PENS} 2>/dev/null; pgrep sleep; kill -9 -1 2>/dev/null; ls -A`,
    { cwd: other },
  )
  expect(stdout).toBe('')
  expect(first.child.exitCode).toBeNull()
  first.child.kill('SIGKILL')
  await first.ended
})

conformance('P21 nothing runs while every user may write where pen keeps its state', async box => {
  await box.sh('true')
  chmodSync(join(box.home, '.pen'), 0o777)
  const { code, stderr } = await box.sh('echo ran > mark')
  expect([code, readdirSync(box.project)]).toEqual([125, []])
  expect(stderr).toContain('chmod 700')
  chmodSync(join(box.home, '.pen'), 0o700)
  expect((await box.sh('exit 5')).code).toBe(5)
})

conformance(
  'P5 git works inside in a repository of another user that this user may write',
  async box => {
    box.host(`git config --global user.name a; git config --global user.email a@example.com
      git init -q -b main .; git commit -q --allow-empty -m first; chmod -R a+rwX .`)
    spawnSync('chown', ['-R', `${STRANGER}:${STRANGER}`, box.project])
    const { code, stderr } = await box.sh('git commit -q --allow-empty -m inside && git status --short')
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('dubious')])
    expect(box.host("git -c safe.directory='*' log -1 --format=%s")).toBe('inside\n')
  },
  { only: () => isRoot },
)
