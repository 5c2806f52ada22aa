import { expect } from 'bun:test'
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { quote } from './box.ts'
import { conformance } from './conformance.ts'

/** What git does on the host, with what the sandbox left: the backend has no part in it. */
const ON_THE_HOST = { users: 'ordinary', once: 'git on the host is the same after every backend' } as const

const PLACES = [
  '.git/hooks/pre-commit',
  '.git/config',
  '.envrc',
  '.vscode/tasks.json',
  '.claude/settings.json',
  '.mcp.json',
  '.pen/config.json',
  '.npmrc',
  '.githooks/x',
  '.agents/plugins/x/plugin.json',
  '.github/extensions/x/extension.mjs',
  '.jj/workspace-config.toml',
  'mise/config.toml',
  '.pdbrc',
]

conformance(
  'P3 an existing protected path cannot be written, renamed, linked or removed; its neighbour can',
  async box => {
    box.host(
      'git init -q .; mkdir .vscode .claude; echo {} > .vscode/tasks.json; echo {} > .claude/settings.json; echo a > .npmrc; echo b > beside',
    )
    const before = box.listing(box.project)
    const { stdout } = await box.sh(`
    for p in .git/hooks/pre-commit .git/hooks/new .git/config ./.git/./config .git//config; do echo evil > $p; done
    for p in .npmrc .vscode/tasks.json .vscode/new .claude/settings.json .git/../.npmrc "$PWD/.npmrc" /proc/self/cwd/.npmrc; do echo evil > $p && echo "wrote $p"; done
    mv .git .git2; mv .git/hooks .git/h2; mv .vscode v2; mv .claude c2; mv .npmrc e2; rm -rf .git/hooks .vscode .npmrc; rmdir .git
    rm .claude/settings.json; mv .git/config .git/c; ln .npmrc e3; ln .git/config c3; ln -f beside .npmrc; mv beside .npmrc
    chmod 777 .npmrc .git/hooks; touch .npmrc; truncate -s 0 .npmrc
    echo beside > beside; mkdir -p .claude/notes .git/refs/x; rmdir .claude/notes .git/refs/x; cat .npmrc; truncate -s 2 beside`)
    expect(stdout).toBe('a\n')
    expect(box.listing(box.project)).toEqual(before)
    expect(readFileSync(join(box.project, '.npmrc'), 'utf8')).toBe('a\n')
  },
)

conformance(
  'P3 a protected path made during a run is gone afterwards, however it was made; its neighbour stays',
  async box => {
    box.host('git init -q .; rm -rf .git/hooks; git config user.name x')
    const config = readFileSync(join(box.project, '.git/config'), 'utf8')
    const { stderr } = await box.sh(`
    for p in ${PLACES.join(' ')}; do mkdir -p $(dirname $p); echo '#!/bin/sh' > $p; chmod +x $p; done
    mkdir x; echo evil > x/f; mv x .idea; ln -s /bin/sh .gdbinit; ln -s x .cursor; echo ok > note; echo ok > .agents/note; echo ok > .github/note; echo ok > mise/note; sleep 0.1`)
    for (const place of [...PLACES.filter(place => place !== '.git/config'), '.idea', '.gdbinit', '.cursor'])
      expect([place, lstatSync(join(box.project, place), { throwIfNoEntry: false })]).toEqual([
        place,
        undefined,
      ])
    expect(readFileSync(join(box.project, '.git/config'), 'utf8')).toBe(config)
    for (const note of ['note', '.agents/note', '.github/note', 'mise/note'])
      expect([note, readFileSync(join(box.project, note), 'utf8')]).toEqual([note, 'ok\n'])
    expect(stderr).toContain('.envrc')
  },
)

conformance(
  'P3 a protected file with a hard link from an earlier run stops the run until the link is gone',
  async box => {
    await box.sh('git init -q .; ln .git/config kept; echo mine > other; ln other .env')
    const write = 'echo "[core] fsmonitor = evil" >> kept; cat other; echo ran'
    box.host('echo SECRET >> .env')
    const env = await box.sh(write)
    expect([env.code, env.stdout]).toEqual([2, ''])
    expect(env.stderr).toContain('.env')
    box.host('cp -p .env e; mv e .env; echo mine > other')
    // pen copies the repository that the sandbox made, so that link is gone. One that the user made is not.
    expect(box.host('stat -c %h .git/config')).toBe('1\n')
    box.host('ln -f .git/config kept')
    const config = await box.sh(write)
    expect([config.code, config.stdout]).toEqual([2, ''])
    expect(config.stderr).toContain('.git/config')
    box.host('cp -p .git/config c; mv c .git/config')
    expect((await box.sh(write)).stdout).toBe('mine\nran\n')
    expect(readFileSync(join(box.project, '.git/config'), 'utf8')).not.toContain('evil')
  },
)

conformance(
  'P3 a project script that the user’s git settings run cannot be changed; other scripts can',
  async box => {
    box.host(`git init -q .; mkdir tools; for f in monitor show free; do printf '#!/bin/sh\ncat $1\n' > tools/$f; chmod +x tools/$f; done
    git config core.fsmonitor tools/monitor; git config diff.x.textconv 'sh tools/show'`)
    const { stdout } = await box.sh(
      'for f in monitor show free; do echo evil > tools/$f && echo wrote $f; rm -f tools/$f; done; mv tools t; mkdir tools',
    )
    expect(stdout).toBe('wrote free\n')
    for (const name of ['monitor', 'show'])
      expect(readFileSync(join(box.project, 'tools', name), 'utf8')).toBe('#!/bin/sh\ncat $1\n')
    expect(existsSync(join(box.project, 'tools/free'))).toBe(false)
  },
  { users: 'ordinary' },
)

conformance(
  'P3 hooks from the user’s git settings are held, also when a variable moves those settings',
  async box => {
    box.host('git init -q .')
    const config = join(box.home, 'settings')
    box.file(config, '[core]\n\thooksPath = team\n')
    const env = { GIT_CONFIG_GLOBAL: config }
    await box.sh('mkdir team other; echo evil > team/pre-commit; echo ok > other/x; sleep 0.1', { env })
    expect(existsSync(join(box.project, 'team'))).toBe(false)
    expect(readFileSync(join(box.project, 'other/x'), 'utf8')).toBe('ok\n')
  },
  { users: 'ordinary' },
)

conformance(
  'P3 no link among the refs lets the host’s git change another repository; its own refs update',
  async box => {
    const git = 'git -c user.name=A -c user.email=a@example.com'
    box.host(`for r in . ../other; do git init -q -b main $r; ${git} -C $r commit -q --allow-empty -m i; done
    git -C ../other branch keep; git clone -q --bare . ../up.git; git remote add origin ../up.git; git fetch -q`)
    await box.sh(
      'rm -rf .git/refs/remotes/origin; ln -s ../../../../other/.git/refs/heads .git/refs/remotes/origin; git branch topic',
    )
    const before = box.host('git -C ../other for-each-ref')
    box.host('git fetch -q --prune')
    expect(box.host('git -C ../other for-each-ref')).toBe(before)
    expect(box.host('git for-each-ref --format="%(refname)"')).toBe(
      'refs/heads/main\nrefs/heads/topic\nrefs/remotes/origin/main\n',
    )
  },
  ON_THE_HOST,
)

conformance(
  'P3 no link in the git directory leads the host’s git to another file; git’s own files stay',
  async box => {
    const rc = box.file(join(box.home, 'rc'), 'mine\n')
    const git = 'git -c user.name=A -c user.email=a@example.com'
    box.host(
      `git init -q -b main .; ${git} commit -q --allow-empty -m one; git symbolic-ref HEAD refs/heads/main`,
    )
    await box.sh(`
    git checkout -q -b x; echo 1 > a; git add a; ${git} commit -qm two; git checkout -q main; echo 2 > b; git add b; ${git} commit -qm three
    ln -s ../../rc .git/MERGE_MSG; ln -s ${quote(rc)} .git/COMMIT_EDITMSG_; mv .git/COMMIT_EDITMSG_ .git/COMMIT_EDITMSG
    rm .git/logs/HEAD .git/logs/refs/heads/main; ln -s ../../../rc .git/logs/HEAD; ln -s ${quote(rc)} .git/logs/refs/heads/main
    ln -s refs/heads/main .git/inner; ln -s ${quote(rc)} out`)
    expect(box.host('find .git -type l')).toBe('')
    box.host(`${git} merge -q --no-edit x; ${git} commit -q --allow-empty -m four`)
    expect(readFileSync(rc, 'utf8')).toBe('mine\n')
    expect(box.host('git log --format=%s -1; readlink out').split('\n')).toEqual(['four', rc, ''])
  },
  ON_THE_HOST,
)

conformance(
  'P3 a file denied behind a link stays denied in the next run when the link is removed or changed',
  async box => {
    box.file('conf/prod.env', 'SECRET')
    box.host('ln -s conf/prod.env .env; ln -s conf .env.d; ln -s .env.loop .env.loop')
    const before = box.listing(box.project)
    for (const evade of [
      'rm .env .env.d',
      'ln -sfn nowhere .env; mv .env.d d; rm d',
      'rm .env .env.d; touch .env',
    ]) {
      const { stdout } = await box.sh(`${evade}; cat conf/prod.env .env`)
      expect(stdout).toBe('')
      expect(box.listing(box.project)).toEqual(before)
    }
    expect(box.host('readlink .env .env.d; cat .env')).toBe('conf/prod.env\nconf\nSECRET')
  },
  { users: 'ordinary' },
)

conformance(
  'P3 a process that outlives the command cannot plant anything after the last check',
  async box => {
    // Many writers until the very end: one that lives after the last check would win.
    const script = `for i in 1 2 3 4 5 6 7 8; do (while :; do echo evil > .envrc; echo evil > .mcp.json; done) 2>/dev/null & done; sleep 0.15`
    for (let i = 0; i < 3; i++) {
      await box.sh(script)
      await Bun.sleep(30)
      expect(existsSync(join(box.project, '.envrc'))).toBe(false)
      expect(existsSync(join(box.project, '.mcp.json'))).toBe(false)
    }
  },
)

conformance(
  'P3 a denied path cannot be read, listed, renamed, linked or covered; its neighbour can',
  async box => {
    box.file('.env', 'SECRET')
    box.file('.env.local', 'SECRET')
    box.file('secrets/deep/key', 'SECRET')
    box.file('a/b/key', 'SECRET')
    box.file('a/b/other', 'open')
    box.host('ln -s .env link; ln -s secrets/deep dirlink')
    const before = box.listing(box.project)
    const { stdout } = await box.sh(
      `cat .env ./.env .env.local link secrets/deep/key dirlink/key a/b/key a/../a/b/key /proc/self/cwd/.env "$PWD/.env" .ENV
     ls secrets; mv .env x && cat x; ln .env y && cat y; cp .env z; mv a a2; mv a/b a/b2; rm -f .env; rm -rf secrets; echo new > .env
     mv secrets s2; cat < .env; dd if=.env; grep -r SECRET .; tar c .env 2>/dev/null | grep -a SECRET; cat a/b/other`,
      { flags: ['--deny', 'secrets/', '--deny', 'a/b/key'] },
    )
    expect(stdout).toBe('open')
    expect(box.listing(box.project)).toEqual(before)
    expect(box.host('cat .env secrets/deep/key')).toBe('SECRETSECRET')
  },
)

conformance(
  'P3 a grant below a denied directory is visible, and nothing else of that directory',
  async box => {
    const drafts = 'private/my dräfts'
    for (const name of ['private/key', `${drafts}/old`, `${drafts}/secret/key`, 'private/notes/n'])
      box.file(name, name.endsWith('key') ? 'SECRET' : 'shown\n')
    const before = box.listing(box.project)
    const flags = ['--deny', 'private/', '--write', drafts, '--read', 'private/notes']
    const more = ['--deny', `${drafts}/secret`, '--write', 'shut/in/new', '--deny', 'shut/']
    const { stdout } = await box.sh(
      `cat '${drafts}/old' private/notes/n private/key '${drafts}/secret/key'; ls private; ls shut; ls '${drafts}'
      echo x > private/notes/n; echo x > private/x; rm -r private shut; mv private p; chmod 777 private; mv '${drafts}' private/d
      echo new > '${drafts}/new'; cat '${drafts}/new'; rm '${drafts}/new'; touch shut/in/new/file && rm shut/in/new/file && echo made
      cd '${drafts}' && pwd`,
      { flags: [...flags, ...more] },
    )
    expect(stdout).toBe(`shown\nshown\nold\nsecret\nnew\nmade\n${join(box.project, drafts)}\n`)
    expect(box.listing(box.project)).toEqual(before)
  },
)

conformance(
  'P3 nested and planted repositories are reported at the end, ordinary directories are not',
  async box => {
    box.host('git init -q .')
    const { stderr } = await box.sh(
      'git init -q sub; git -C sub config core.fsmonitor /bin/evil; mkdir plain; mkdir bare; git init -q --bare bare/x; printf "[core]\\nfsmonitor=evil\\n" >> bare/x/config',
    )
    expect(stderr).toContain(`${box.project}/sub`)
    expect(stderr).toContain('core.fsmonitor')
    expect(stderr).toContain(`${box.project}/bare/x`)
    expect(stderr).not.toContain(`${box.project}/plain`)
  },
  ON_THE_HOST,
)

conformance(
  'P3 files that a build, a test or a push runs stay writable, and changes are reported',
  async box => {
    for (const name of ['package.json', 'Makefile', '.github/workflows/old.yml']) box.file(name, 'old')
    // File system clocks are coarser than ours: at the end of a run, what was made before it is older than the
    // next.
    await box.sh('true')
    const quiet = await box.sh('echo x > notes; cat package.json')
    expect([quiet.stdout, quiet.stderr.includes('changed during the run')]).toEqual(['old', false])
    const { stderr } = await box.sh(
      'echo new > package.json; touch -d 2001-01-01 package.json; echo new > .github/workflows/new.yml; echo x > conftest.py',
    )
    expect(stderr).toMatch(
      /changed during the run, .*: package\.json, conftest\.py, \.github\/workflows\/new\.yml; read the difference/,
    )
    expect(readFileSync(join(box.project, 'package.json'), 'utf8')).toBe('new\n')
  },
  ON_THE_HOST,
)
