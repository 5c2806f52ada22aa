/** Denied and protected places while a sandbox runs: absent at the start, then made or replaced on the host. */
import { expect } from 'bun:test'
import { lstatSync, readFileSync } from 'node:fs'
import { isRefused, late } from './late-run.ts'

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

late('P3 a link that the host makes at a denied place covers its target', async ({ project, start }) => {
  project.host('mkdir conf; echo S > conf/prod; echo t > conf/test')
  const sandbox = await start()
  project.host('ln -s conf/prod .env')
  await sandbox.within1s('cat conf/prod', isRefused)
  expect(isRefused(await sandbox.inside('cat .env'))).toBe(true)
  expect((await sandbox.inside('cat conf/test')).said).toBe('t\n')
})

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
)

late('P3 a flood of denied files, meant to exhaust the watch, ends the run', async ({ start }) => {
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
})

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
)
