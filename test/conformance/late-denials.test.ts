/** Denied and protected places while a sandbox runs: absent at the start, then made or replaced on the host. */
import { expect } from 'bun:test'
import { lstatSync, readFileSync } from 'node:fs'
import { isRefused, type LateRun, late } from './late-run.ts'

const OF_THE_WATCH = { users: 'ordinary', once: 'the watch is the same on every backend' } as const

late(
  'P3 a denied file that the host makes during a run cannot be read; an ordinary one can',
  async ({ project, start }) => {
    const sandbox = await start()
    project.host('echo SECRET > .env.local; echo text > notes')
    await sandbox.within1s('cat .env.local', isRefused)
    expect(await sandbox.inside('cat notes')).toEqual({ said: 'text\n', code: 0 })
    for (const line of ['echo x > .env.local', 'rm -f .env.local', 'mv .env.local y', 'ln .env.local y'])
      expect((await sandbox.inside(line)).code).not.toBe(0)
    const { printed } = await sandbox.end()
    expect(printed).toContain('.env.local appeared or was replaced while the sandbox ran, and was covered')
    expect(project.host('cat .env.local; ls -A')).toBe('SECRET\n.env.local\n.git\nnotes\n')
  },
  { review: 'all' },
)

late(
  'P3 a denied file that is replaced stays denied, by rename and by removal, again and again',
  async ({ project, start }) => {
    project.host('echo OLD > .env')
    const sandbox = await start()
    expect(isRefused(await sandbox.inside('cat .env'))).toBe(true)
    for (let i = 0; i < 10; i++) {
      project.host(i % 2 === 0 ? `echo NEW${i} > draft; mv draft .env` : `rm .env; echo NEW${i} > .env`)
      await sandbox.within1s('cat .env', isRefused)
    }
    expect(project.host('cat .env')).toBe('NEW9\n')
    expect((await sandbox.end()).printed).toContain('and was covered')
  },
)

late(
  'P3 denied directories and deep denied paths are covered when they appear; neighbours are not',
  async ({ project, start }) => {
    const sandbox = await start('--deny', 'secrets/', '--deny', 'config/*/key')
    project.host(
      'mkdir -p secrets config/prod; echo S > secrets/a; echo K > config/prod/key; echo p > config/prod/port',
    )
    await sandbox.within1s('cat secrets/a', isRefused)
    await sandbox.within1s('cat config/prod/key', isRefused)
    expect(isRefused(await sandbox.inside('ls secrets'))).toBe(true)
    expect((await sandbox.inside('echo x > secrets/b')).code).not.toBe(0)
    expect(await sandbox.inside('cat config/prod/port')).toEqual({ said: 'p\n', code: 0 })
    // The parent directory is not held. What was covered stays covered under its new name.
    await sandbox.inside('mv config moved')
    expect(isRefused(await sandbox.inside('cat moved/prod/key'))).toBe(true)
    await sandbox.end()
    expect(project.host('ls secrets; cat moved/prod/key')).toBe('a\nK\n')
  },
)

late(
  'P3 a sandbox that denies more starts beside one that could replace the name, and hides it',
  async ({ project, start }) => {
    project.host('mkdir -p deep/er; echo S > deep/er/key; echo n > deep/er/note')
    const first = await start()
    const second = project.start('--deny', 'deep/er/key')
    try {
      await second.inside('true')
      expect(isRefused(await second.inside('cat deep/er/key'))).toBe(true)
      expect((await second.inside('mv deep moved')).code).not.toBe(0)
      expect((await second.inside('cat deep/er/note')).said).toBe('n\n')
      expect((await first.inside('cat deep/er/key')).said).toBe('S\n')
    } finally {
      await second.end()
    }
  },
  { users: 'ordinary' },
)

late(
  'P3 a link that the host makes at a denied place covers its target',
  async ({ project, start }) => {
    project.host('mkdir conf; echo S > conf/prod; echo t > conf/test')
    const sandbox = await start()
    project.host('ln -s conf/prod .env')
    await sandbox.within1s('cat conf/prod', isRefused)
    expect(isRefused(await sandbox.inside('cat .env'))).toBe(true)
    expect((await sandbox.inside('cat conf/test')).said).toBe('t\n')
  },
  { users: 'ordinary' },
)

late(
  'P3 a denied dangling link covers what the host puts at its target later',
  async ({ project, start }) => {
    project.host('mkdir conf; ln -s conf/prod .env; ln -s conf/new/deep .env.local')
    const sandbox = await start()
    project.host('mkdir conf/new; echo S > conf/prod; echo S > conf/new/deep; echo t > conf/new/test')
    for (const path of ['.env', 'conf/prod', '.env.local', 'conf/new/deep'])
      await sandbox.within1s(`cat ${path}`, isRefused)
    expect((await sandbox.inside('cat conf/new/test')).said).toBe('t\n')
    expect((await sandbox.end()).printed).toContain('and was covered')
  },
  { users: 'ordinary' },
)

late(
  'P3 a link on the way to an absent denied path is refused or moved; an ordinary link stays',
  async ({ project, start }) => {
    project.host('mkdir config; mkdir real; ln -s real/key linked')
    const deny = ['config/prod.key', 'config/*.pem', 'later/deep/key', 'linked']
    const sandbox = await start(...deny.flatMap(path => ['--deny', path]))
    for (const line of ['mv config c2', 'mv real c3']) expect((await sandbox.inside(line)).code).not.toBe(0)
    await sandbox.inside('mkdir -p mine/deep; ln -s mine later; ln -s config other')
    await sandbox.within1s('[ -e later ] || echo gone', ({ said }) => said === 'gone\n')
    await sandbox.inside('mkdir later; ln -s ../mine/deep later/deep')
    await sandbox.within1s('[ -e later/deep ] || echo gone', ({ said }) => said === 'gone\n')
    await sandbox.inside('rm linked; ln -s mine/x linked')
    await sandbox.within1s('readlink linked', ({ said }) => said === 'real/key\n')
    project.host(
      'mkdir later/deep; for f in config/prod.key config/a.pem later/deep/key linked; do echo S > $f; done',
    )
    for (const path of ['config/prod.key', 'config/a.pem', 'later/deep/key', 'real/key', 'other/a.pem'])
      await sandbox.within1s(`cat ${path}`, isRefused)
    project.host('echo t > config/twin')
    expect((await sandbox.inside('cat other/twin; ls mine/deep')).said).toBe('t\n')
    expect((await sandbox.end()).printed).toContain('later/deep appeared')
  },
  { users: 'ordinary' },
)

late(
  'P3 a denied path behind a link of the project is not started with, and is denied by its real name',
  async ({ project, start }) => {
    project.host('mkdir -p real/a; echo S > real/key; echo S > real/a/.env; ln -s real conf')
    for (const rule of ['conf/key', './conf/key', `${project.workspace}/conf/key`, 'conf/*/.env']) {
      const run = project.start('--deny', rule)
      const { code, printed } = await run.end()
      expect([rule, code === 0, printed]).toEqual([rule, false, expect.stringContaining('through this link')])
    }
    const sandbox = await start('--deny', `${project.workspace}/real/key`, '--deny', 'real/*/.env')
    for (const path of ['conf/key', 'real/key', 'conf/a/.env'])
      expect([path, isRefused(await sandbox.inside(`cat ${path}`))]).toEqual([path, true])
  },
  OF_THE_WATCH,
)

late(
  'P3 a directory that is moved as soon as a denied file appears in it ends the run; later, the file stays covered',
  async ({ project, start }) => {
    const move = async (waitMs: number): Promise<LateRun> => {
      project.host('rm -rf config old; mkdir config')
      const sandbox = await start('--deny', 'config/prod/key')
      await sandbox.inside('mkdir config/prod')
      await Bun.sleep(400)
      project.host('echo S > config/prod/key')
      await Bun.sleep(waitMs)
      sandbox.child.stdin?.write('mv config/prod config/old\n')
      return sandbox
    }
    const ended = await (await move(0)).ended()
    expect([ended.code === 0, ended.printed]).toEqual([
      false,
      expect.stringMatching(/config\/prod\/key was moved/),
    ])
    const sandbox = await move(1500)
    await sandbox.within1s('cat config/old/key', isRefused)
    expect([(await sandbox.end()).code, project.host('cat config/old/key')]).toEqual([0, 'S\n'])
  },
)

/** Turns a denied link to one of many places, and reads what the host wrote through it. */
const TURNER = `
import os, time
for i in range(200): os.makedirs("d/%d" % i)
print("turning", flush=True)
end = time.time() + 20
while time.time() < end:
  for i in range(200): os.symlink("d/%d/s" % i, "x"); os.rename("x", ".env")
  for i in range(200):
    try: print(os.read(os.open("d/%d/s" % i, os.O_RDONLY), 9), flush=True)
    except OSError: pass`

late(
  'P3 a denied link that the sandbox turns all the time ends the run; one that it turns once is covered',
  async ({ project, start }) => {
    project.host(`cat > turn.py <<'E'\n${TURNER}\nE\nmkdir sub a b`)
    const sandbox = await start()
    await sandbox.inside(
      'ln -s sub/second .env; ln -s ../a/1 sub/second; sleep 0.5; ln -sfn ../b/2 sub/second',
    )
    await Bun.sleep(500)
    project.host('echo S > .env')
    await sandbox.within1s('cat b/2', isRefused)
    await sandbox.inside('rm .env')
    const turning = sandbox.inside('python3 turn.py', 30_000)
    turning.catch(() => {})
    await new Promise(resolve => sandbox.child.once('exit', resolve))
    expect((await sandbox.end()).printed).toContain('/.env changed too often while the sandbox ran')
  },
  { once: 'the watch is the same on every backend', users: 'ordinary' },
)

/** Opens a directory for 5 ms after each 150 ms, and reads a denied file in it as often as it can. */
const LOCKER = `
import os, time
top, first, last, end = os.open(".", os.O_RDONLY), 0, 0, time.time() + 4
while time.time() < end:
  os.fchmod(top, 0o755)
  until = time.time() + 0.005
  while time.time() < until:
    try:
      if os.read(os.open(".env.two", os.O_RDONLY, dir_fd=top), 9):
        last = time.time()
        first = first or last
    except OSError: pass
  os.fchmod(top, 0)
  time.sleep(0.15)
os.fchmod(top, 0o755)
print(last - first < 1)`

late(
  'P3 a project that the sandbox locks against a listing, or all the time, hides no denied file',
  async ({ project, start }) => {
    project.host(`cat > lock.py <<'E'\n${LOCKER}\nE`)
    const sandbox = await start()
    await sandbox.inside('chmod 333 .')
    await Bun.sleep(600)
    project.host('echo S > .env; echo t > twin')
    await sandbox.within1s('cat .env', isRefused)
    expect((await sandbox.inside('cat twin; stat -c %a .; chmod 755 .')).said).toBe('t\n333\n')
    const locking = sandbox.inside('python3 lock.py', 20_000)
    await Bun.sleep(500)
    project.host('cd /; until echo S > "$OLDPWD/.env.two"; do :; done 2>/dev/null')
    expect((await locking).said).toBe('True\n')
    expect(isRefused(await sandbox.inside('cat .env.two'))).toBe(true)
  },
  { users: 'ordinary' },
)

late(
  "P3 a denied path in the git directory shows nothing of the host's; a pin opens no protected directory",
  async ({ project, start }) => {
    project.host('mkdir -p hooks/deep; echo S > hooks/deep/key; git config core.hooksPath hooks')
    project.host('git config user.name secret')
    const sandbox = await start('--deny', '.git/config', '--deny', 'hooks/deep/key')
    expect(isRefused(await sandbox.inside('cat .git/config'))).toBe(true)
    await sandbox.inside('echo evil > .git/evil; echo evil > hooks/deep/evil; echo fine > fine')
    await sandbox.end()
    expect(project.host('ls .git/evil hooks/deep/evil 2>/dev/null || cat fine')).toBe('fine\n')
  },
)

late(
  'P3 git settings of the host are not in the sandbox, before and after the host changes them',
  async ({ project, start }) => {
    const sandbox = await start()
    const evil = String.raw`printf "[core]\n\tfsmonitor=./evil\n" >>`
    // A descriptor that was opened before the change writes to the sandbox's own file, too.
    const early = sandbox.inside(`exec 3>>.git/config; sleep 1; ${evil} .git/config; ${evil} /proc/self/fd/3`)
    project.host('git config user.name mine')
    expect((await early).code).toBe(0)
    expect((await sandbox.inside('echo x > .git/COMMIT_EDITMSG; echo evil > .git/hooks/x')).code).toBe(0)
    await sandbox.end()
    expect(project.host('git config user.name; git config --get core.fsmonitor || true')).toBe('mine\n')
    expect(project.host('ls .git/COMMIT_EDITMSG .git/hooks/x 2>/dev/null || true')).toBe('')
    expect(project.host('git config core.bare')).toBe('false\n')
  },
  { users: 'ordinary' },
)

late(
  'P3 two hundred denied files at once are covered, and the host keeps every one',
  async ({ project, start }) => {
    const sandbox = await start()
    project.host('for i in $(seq 200); do echo S$i > .env.$i; done')
    await sandbox.within1s('cat .env.* | head -c 100', ({ said }) => !/S\d/.test(said))
    await sandbox.end()
    expect(project.host('cat .env.* | wc -l').trim()).toBe('200')
    expect(lstatSync(`${project.workspace}/.env.7`).mode & 0o777).toBe(0o644)
  },
  { review: 'ordinary', users: 'ordinary' },
)

late(
  'P3 a sandbox that swaps files and links at denied places neither reaches outside nor uncovers one',
  async ({ project, start }) => {
    project.host('echo S > .env; echo precious > ../outside')
    const sandbox = await start()
    // A program, not a shell: a thousand swaps take a shell ten seconds, and race less.
    const swap = `import os, time
def put(make):
  make('a')
  try: os.rename('a', '.env.x')
  except OSError: os.unlink('.env.x'); os.rename('a', '.env.x')
def clear():
  for gone in (os.unlink, os.rmdir):
    for name in ('a', '.env.x'):
      try: gone(name)
      except OSError: pass
for n in range(300):
  for make in (lambda a: os.symlink('../outside', a), lambda a: os.symlink('/etc/passwd', a), lambda a: open(a, 'w').write('q'), os.mkdir):
    try: put(make)
    except OSError: clear()
    time.sleep(0.0005)
  clear()`
    project.host(`cat > swap.py <<'E'\n${swap}\nE`)
    const racing = sandbox.inside('python3 swap.py; rm -f swap.py', 20_000)
    await Bun.sleep(100)
    project.host('echo SECRET > .env.user')
    await racing
    await sandbox.within1s('cat .env.user', isRefused)
    expect(isRefused(await sandbox.inside('cat .env'))).toBe(true)
    expect((await sandbox.inside('head -c 5 /etc/passwd')).said).toBe('root:')
    await sandbox.end()
    expect(project.host('cat ../outside .env .env.user')).toBe('precious\nS\nSECRET\n')
  },
  { review: 'ordinary', users: 'ordinary' },
)

late(
  'P3 a flood of denied files, meant to exhaust the watch, ends the run',
  async ({ start }) => {
    const sandbox = await start()
    const flood = sandbox.inside(
      'n=0; while [ $n -lt 3000 ]; do echo > .env.$n; n=$((n+1)); done; sleep 20',
      15_000,
    )
    flood.catch(() => {})
    await new Promise(resolve => sandbox.child.once('exit', resolve))
    const { printed, code } = await sandbox.end()
    expect(printed).toContain('more denied files than can be covered')
    expect(code).toBe(137)
  },
  OF_THE_WATCH,
)

late('P3 every cover is in the audit, and nothing of it is left on the host', async ({ project, start }) => {
  const sandbox = await start()
  project.host('echo S > .env; mkdir -p .envdir')
  await sandbox.within1s('cat .env', isRefused)
  await sandbox.within1s('ls .envdir', isRefused)
  expect((await sandbox.end()).code).toBe(0)
  const records = project.host('cat "$HOME"/.pen/sandboxes/*/audit/*')
  for (const path of ['.env', '.envdir'])
    expect(records).toContain(
      `"kind":"place-held","path":"${project.workspace}/${path}","how":"cover","held":true`,
    )
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(project.base)
  expect(project.host('ls -A')).toBe('.env\n.envdir\n.git\n')
})

late(
  'P3 a repository added to the index inside is reported, and git status on the host does not enter it',
  async ({ start, project }) => {
    const sandbox = await start()
    const made = await sandbox.inside(
      'git init -q lib/dep && cd lib/dep && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x && git config core.fsmonitor "touch $PWD/../../ran" && cd ../.. && git add lib/dep',
    )
    expect(made.code).toBe(0)
    const { printed } = await sandbox.end()
    expect(printed).toContain('lib/dep')
    expect(printed).toContain('core.fsmonitor=touch')
    expect(project.host('git status --short; git ls-files --stage; ls')).toBe('?? lib/\nlib\n')
  },
  { users: 'ordinary' },
)
