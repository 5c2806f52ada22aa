/** Denials at any depth: deny globs that begin with `**` + `/`, at the start and while a sandbox runs. */
import { expect } from 'bun:test'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'
import { isRefused, late } from './late-run.ts'

const OF_THE_WATCH = { users: 'ordinary', once: 'the watch is the same on every backend' } as const

const DENY = ['--deny', '**/.env', '--deny', '**/keys/*.pem', '--deny', '**/vault/']
/** Names that a shell, a mount option or a list of paths could take apart. */
const ODD = ['sp ace', 'üñí', 'new\nline', 'com,ma', "quo'te", 'back\\slash', '$HOME', 'co:lon', '-dash']

conformance(
  'P3 a file that is denied at any depth cannot be read, moved, linked or removed; its twin can',
  async box => {
    const denied = ['.env', 'a/b/c/.env', 'keys/k.pem', 'x/keys/k.pem', 'd/vault/in']
    const open = ['env', 'a/b/c/env', 'a/.env.x/in', 'x/k.pem', 'x/keys/deep/k.pem', 'f/vault']
    for (const name of ODD) denied.push(`o/${name}/.env`)
    for (const name of ODD) open.push(`o/${name}/twin`)
    for (const path of denied) box.file(path, 'SECRET')
    for (const path of open) box.file(path, 'twin')
    const { stdout } = await box.sh(
      `find . -name .git -prune -o -type f -exec cat {} + 2>/dev/null; echo
      mv a z; rm -rf d x/keys; ls d/vault; echo evil > a/b/c/.env; ln keys/k.pem y; cat y; echo done`,
      { flags: DENY },
    )
    expect(stdout).toBe(`${'twin'.repeat(open.length)}\ndone\n`)
    for (const path of denied) expect(readFileSync(join(box.project, path), 'utf8')).toBe('SECRET')
  },
  { review: 'ordinary' },
)

conformance(
  'P3 the target of a link that is denied at any depth is denied; other links are not followed',
  async box => {
    box.file('conf/prod', 'SECRET')
    box.file('conf/test', 'twin')
    box.file('deep/in/file', 'twin')
    box.host('ln -s ../../conf/prod deep/in/.env; ln -s . deep/loop; ln -s / deep/out; ln -s .env deep/.env')
    const { stdout } = await box.sh('cat conf/prod deep/in/.env; cat conf/test deep/loop/in/file', {
      flags: DENY,
    })
    expect(stdout).toBe('twintwin')
  },
  { users: 'ordinary' },
)

conformance(
  'P3 a larger tree than is searched stops the run, and names the bound, the pattern and a fix',
  async box => {
    box.file('src/.env', 'SECRET')
    for (let i = 0; i < 20; i++) {
      mkdirSync(join(box.project, `big/${i}`), { recursive: true })
      for (let j = 0; j < 1000; j++) mkdirSync(join(box.project, `big/${i}/${j}`))
    }
    const { code, stdout, stderr } = await box.sh('cat src/.env', { flags: DENY })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('files.deny **/.env is searched in all directories')
    expect(stderr).toContain('more than 20000; most of those found are in ./big')
    expect(stderr).toContain("fix: name the directories: --deny 'packages/*/.env'")
    const hidden = await box.sh('cat src/.env; ls big; echo ran', { flags: [...DENY, '--deny', 'big/'] })
    expect([hidden.code, hidden.stdout]).toEqual([0, 'ran\n'])
  },
  { once: 'the tree is searched before there is a backend', only: ({ who }) => who.uid !== 0 },
)

conformance(
  'P3 a locked directory, a hard link or a non-UTF-8 name at any depth stops the run until it is gone',
  async box => {
    const flags = ['--deny', '**/.env*']
    const refused = async (what: string): Promise<void> => {
      const { code, stdout, stderr } = await box.sh('echo ran', { flags })
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain(what)
    }
    const secret = box.file('a/b/.env', 'SECRET')
    linkSync(secret, join(box.project, 'other'))
    await refused('has a second name (hard links)')
    rmSync(join(box.project, 'other'))
    const odd = Buffer.concat([Buffer.from(`${box.project}/a/d`), Buffer.from([0xff])])
    mkdirSync(odd)
    const inOdd = Buffer.concat([odd, Buffer.from('/.env')])
    writeFileSync(inOdd, 'SECRET')
    await refused('has a name that is no text')
    rmSync(inOdd)
    if (box.launcher.who.uid !== 0) {
      chmodSync(join(box.project, 'a/b'), 0)
      await refused(`at ${box.project}/a/b\n  fix: a directory on the way is locked`)
      chmodSync(join(box.project, 'a/b'), 0o755)
    }
    expect((await box.sh('cat a/b/.env; echo ran', { flags })).stdout).toBe('ran\n')
  },
  { once: 'the tree is searched before there is a backend', users: 'ordinary' },
)

late(
  'P3 a file denied at any depth is covered when it appears, also in new and moved directories',
  async ({ project, start }) => {
    project.host('mkdir -p old/deep ../outside/in/er; echo S > ../outside/in/er/.env')
    const sandbox = await start(...DENY)
    project.host('echo S > old/deep/.env; echo t > old/deep/twin')
    await sandbox.within1s('cat old/deep/.env', isRefused)
    project.host('mkdir -p new/a/b/c/keys; echo S > new/a/b/c/keys/k.pem; echo t > new/a/b/c/k.pem')
    await sandbox.within1s('cat new/a/b/c/keys/k.pem', isRefused)
    project.host('mv ../outside moved')
    await sandbox.within1s('cat moved/in/er/.env', isRefused)
    // A directory that the sandbox makes and renames is searched under its last name.
    await sandbox.inside('mkdir -p one/two; mv one three; mv three/two three/2')
    project.host('echo S > three/2/.env; mkdir -p three/vault; echo S > three/vault/in')
    await sandbox.within1s('cat three/2/.env', isRefused)
    await sandbox.within1s('cat three/vault/in', isRefused)
    await sandbox.inside('mkdir -m 311 shut; mkdir -m 000 locked')
    await Bun.sleep(300)
    project.host('echo S > shut/.env')
    await sandbox.within1s('cat shut/.env', isRefused)
    expect((await sandbox.inside('cat old/deep/twin new/a/b/c/k.pem')).said).toBe('t\nt\n')
    expect((await sandbox.inside('stat -c %a shut locked')).said).toBe('311\n0\n')
    const { printed } = await sandbox.end()
    expect(printed).toContain(
      'moved/in/er/.env appeared or was replaced while the sandbox ran, and was covered',
    )
    expect(project.host('cat moved/in/er/.env three/2/.env')).toBe('S\nS\n')
  },
)

late(
  'P3 directories that are renamed and swapped all the time hide no file that the host makes',
  async ({ project, start }) => {
    project.host('mkdir -p calm/deep')
    const sandbox = await start(...DENY)
    const storm = `import os, time
os.makedirs('s/a/b/c'); os.makedirs('s/d/b/c')
end = time.time() + 4
while time.time() < end:
  for one, two in (('s/a', 's/x'), ('s/d', 's/a'), ('s/x', 's/d'), ('s', 't'), ('t', 's')):
    os.rename(one, two)`
    project.host(`cat > storm.py <<'E'\n${storm}\nE`)
    const racing = sandbox.inside('python3 storm.py', 20_000)
    await Bun.sleep(300)
    project.host('echo S > calm/deep/.env; mkdir calm/new; echo S > calm/new/.env')
    expect((await racing).code).toBe(0)
    project.host('for d in a d; do echo S > s/$d/b/c/.env; done')
    for (const path of ['calm/deep', 'calm/new', 's/a/b/c', 's/d/b/c'])
      await sandbox.within1s(`cat ${path}/.env`, isRefused)
  },
  OF_THE_WATCH,
)

late(
  'P3 a sandbox that makes more directories than can be searched is ended',
  async ({ start }) => {
    const sandbox = await start(...DENY)
    const flood = 'for i in $(seq 42); do mkdir -p $(seq -f "f/$i/%g" 1000); done; sleep 20'
    sandbox.inside(flood, 50_000).catch(() => {})
    await new Promise(resolve => sandbox.child.once('exit', resolve))
    const { printed, code } = await sandbox.end()
    expect(printed).toContain('the project has more than 40000 directories, too many to search for **/.env')
    expect(code).toBe(137)
  },
  { once: 'the watch is the same on every backend', only: ({ who }) => who.uid !== 0 },
)

/** Keeps a directory locked or on the move, and opens a denied file in it as often as it can. */
const EVADER = `
import os, sys, time
how = sys.argv[1]
os.makedirs("d/e")
end = time.time() + float(sys.argv[2])
top, seen = os.open("d/e", os.O_RDONLY), 0
while time.time() < end:
  if how == "lock": os.chmod("d", 0)
  else: os.rename("d", "x"); os.rename("x", "y"); os.rename("y", "d")
  if how == "lock":
    time.sleep(0.002); os.chmod("d", 0o700)
  try: seen = os.read(os.open(".env", os.O_RDONLY, dir_fd=top), 9) and time.time()
  except OSError: pass
os.chmod("d", 0o700)
print(end - seen)`

for (const how of ['lock', 'move'] as const)
  late(
    `P3 a directory that the sandbox ${how === 'lock' ? 'locks' : 'renames'} all the time hides no denied file of the host`,
    async ({ project, start }) => {
      project.host(`cat > evade.py <<'E'\n${EVADER}\nE`)
      const sandbox = await start(...DENY)
      const racing = sandbox.inside(`python3 evade.py ${how} 6`, 20_000)
      await Bun.sleep(500)
      project.host('timeout 9 sh -c "until echo S > d/e/.env; do :; done" 2>/dev/null')
      // The descriptor of the directory leads past a cover of the directory, not past one of the file.
      expect(Number((await racing).said)).toBeGreaterThan(3)
      expect(isRefused(await sandbox.inside('cat d/e/.env'))).toBe(true)
    },
    OF_THE_WATCH,
  )
