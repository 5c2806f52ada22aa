import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import { PEN } from './launcher.ts'

/** What git does on the host, with what the sandbox left: the backend has no part in it. */
const ON_THE_HOST = { users: 'ordinary', once: 'git on the host is the same after every backend' } as const

const G = 'git -c user.name=A -c user.email=a@example.com -c protocol.file.allow=always'
const COMMIT = 'git -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m inside'

/** A repository `main` with a submodule `lib`, a linked worktree `tree` beside it and one in it. */
function repositories(box: Box): void {
  box.host(`mkdir ../lib ../main; cd ../lib; git init -q .; ${G} commit -q --allow-empty -m lib
    cd ../main; git init -q .; ${G} commit -q --allow-empty -m main; ${G} submodule --quiet add ../lib lib; ${G} commit -qm sub
    git worktree add -q ../tree; git worktree add -q inner; git -C ../tree config extensions.worktreeConfig true`)
}

/** A git on the host would run or obey each of these. */
const traps = (gitDir: string): string => `
  for hook in post-commit pre-commit fsmonitor-watchman; do printf '#!/bin/sh\\necho evil > %s\\n' "$PWD/evil" > ${gitDir}/hooks/$hook && chmod +x ${gitDir}/hooks/$hook; done
  git --git-dir=${gitDir} config core.hooksPath /tmp; echo '[core]' >> ${gitDir}/config; echo x > ${gitDir}/config.worktree
  mv ${gitDir}/hooks ${gitDir}/h2; mv ${gitDir}/config ${gitDir}/c2; rm -rf ${gitDir}/hooks; ln -sf /tmp ${gitDir}/hooks
  mkdir -p ${gitDir}/info; echo '* filter=evil' > ${gitDir}/info/attributes`

const WHERE: readonly (readonly [string, string, string])[] = [
  ['a linked worktree', 'tree', '../main/.git'],
  ['a submodule, from the top', 'main', '.git/modules/lib'],
  ['a submodule, from within', 'main/lib', '../.git/modules/lib'],
  ['a worktree inside the project', 'main', '.git/worktrees/inner'],
]

/** Kind, mode, target and content of each file of the host's git directory that no commit changes. */
const fixedFiles = (box: Box): string =>
  box.host(`cd ../main/.git
    some() { find . \\( -name objects -o -name refs -o -name logs -o -name 'index*' \\) -prune -o "$@"; }
    { some -printf '%p %y %m %l\\n'; some -type f -exec sha256sum {} +; } | sort`)

conformance(
  "P3 nothing that a sandbox writes becomes a hook, a setting or a link of the host's repository; commits do",
  async box => {
    repositories(box)
    for (const [what, cwd, gitDir] of WHERE) {
      const before = fixedFiles(box)
      const { stdout } = await box.sh(
        `${COMMIT} && echo committed; { ${traps(gitDir)}; } 2>/dev/null; true`,
        {
          cwd: join(box.home, cwd),
        },
      )
      expect([what, stdout]).toEqual([what, 'committed\n'])
      expect([what, fixedFiles(box)]).toEqual([what, before])
      expect([what, box.host(`git -C ../${cwd} log -1 --format=%s`)]).toEqual([what, 'inside\n'])
      for (const repository of ['main', 'main/lib', 'tree', 'main/inner', 'lib'])
        box.host(
          `cd ../${repository}; git -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m outside; git status >/dev/null; git fsck --strict 2>&1`,
        )
      const planted = ['main', 'main/lib', 'tree', 'main/inner'].map(dir => join(box.home, dir, 'evil'))
      expect([what, planted.filter(path => existsSync(path))]).toEqual([what, []])
    }
  },
)

conformance(
  'P3 the pointer of a worktree or a submodule cannot be redirected to another repository',
  async box => {
    repositories(box)
    const pointers = ['tree/.git', 'main/lib/.git', 'main/inner/.git'].map(path => join(box.home, path))
    const before = pointers.map(path => readFileSync(path, 'utf8'))
    for (const cwd of ['tree', 'main', 'main/lib'])
      await box.sh(
        `git init -q fake; printf '[core]\\n\\tfsmonitor = echo evil\\n' >> fake/.git/config
      for p in .git lib/.git inner/.git; do [ -f $p ] && { echo "gitdir: $PWD/fake/.git" > $p; rm -f $p; mv fake/.git $p; printf evil > $p/commondir; }; done; rm -rf fake; true`,
        { cwd: join(box.home, cwd) },
      )
    expect(pointers.map(path => readFileSync(path, 'utf8'))).toEqual(before)
    expect(
      box.host('git -C ../tree rev-parse --git-common-dir; git -C ../main/lib rev-parse --git-dir'),
    ).toBe(`${box.home}/main/.git\n${box.home}/main/.git/modules/lib\n`)
  },
  ON_THE_HOST,
)

conformance(
  'P3 what cannot be held is reported at the end: cloned, nested and bare repositories',
  async box => {
    box.host('git init -q .')
    const { stderr } =
      await box.sh(`git init -q --bare deep/a/b.git; printf '[core]\\n\\tfsmonitor = evil\\n' >> deep/a/b.git/config
    git init -q nested; git -C nested config core.hooksPath hooks; git clone -q nested clone 2>/dev/null
    mkdir -p implicit/objects implicit/refs; echo 'ref: refs/heads/main' > implicit/HEAD; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = true\\n\\tsshCommand = evil\\n' > implicit/config; mkdir ordinary; echo x > ordinary/HEAD`)
    for (const [place, key] of [
      ['deep/a/b.git', 'core.fsmonitor'],
      ['nested', 'core.hookspath'],
      ['implicit', 'core.sshcommand'],
    ] as const)
      expect([
        place,
        stderr
          .split('\n')
          .some(line => line.includes(`${box.project}/${place}`) && line.toLowerCase().includes(key)),
      ]).toEqual([place, true])
    expect(stderr).not.toContain('ordinary')
  },
  ON_THE_HOST,
)

conformance(
  'P5 a worktree and a setting that only the sandbox has are reported, and the branch is on the host',
  async box => {
    box.host('git init -q -b main .; git -c user.name=A -c user.email=a@b.test commit -q --allow-empty -m i')
    const { stderr } = await box.sh('git worktree add -q inner; git -C inner status -s; git config a.b c')
    expect(stderr).toContain('the worktree inner was made in the sandbox')
    expect(stderr).toContain('a.b=c')
    expect(box.host('git branch --format="%(refname:short)"; git config a.b || echo unset')).toBe(
      'inner\nmain\nunset\n',
    )
  },
  ON_THE_HOST,
)

conformance(
  'P3 commits that change denied paths, or what git settings or links lead to, wait; others do not',
  async box => {
    box.host(`git init -q -b main .; mkdir -p tools/hooks real; ln -s real linked
    for file in tools/hooks/post-checkout shared.gitconfig clean.sh real/f .env plain; do echo '# mine' > $file; done
    ${G} add .; ${G} commit -qm files; git config core.hooksPath tools/hooks; git config include.path ../shared.gitconfig
    git config filter.f.clean ./clean.sh; ${PEN} config set files.protect '["linked/f"]'`)
    const { stderr } =
      await box.sh(`for file in tools/hooks/post-checkout shared.gitconfig clean.sh real/f .env plain; do
      git switch -q -c "with-$(basename $file)" main
      git update-index --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),$file; ${G} commit -q --no-verify -m evil
      git reset -q --soft main; git read-tree main; git symbolic-ref HEAD refs/heads/main; git branch -f "with-$(basename $file)" ORIG_HEAD
    done`)
    for (const name of ['post-checkout', 'shared.gitconfig', 'clean.sh', 'f', '.env'])
      expect(stderr).toContain(`with-${name} waits for you`)
    // A slow sandbox may bring over a branch before it has its commit.
    expect(box.host('git branch --no-merged main --format="%(refname:short)"')).toBe('with-plain\n')
  },
  ON_THE_HOST,
)

conformance(
  'P3 an uninitialised submodule cannot become a repository that git status enters',
  async box => {
    repositories(box)
    box.host(`cd ..; ${G} clone -q main copy`)
    await box.sh(
      `git init -q lib; printf '[core]\\n\\tfsmonitor = echo evil > %s/evil; false\\n' "$PWD" >> lib/.git/config; mv lib gone; mkdir lib; true`,
      { cwd: join(box.home, 'copy') },
    )
    box.host('cd ../copy; git status >/dev/null; git diff >/dev/null; git submodule status')
    expect(existsSync(join(box.home, 'copy/lib/.git'))).toBe(false)
    expect(existsSync(join(box.home, 'copy/evil'))).toBe(false)
  },
  { users: 'ordinary' },
)

conformance(
  'P3 a submodule that the user adds while a sandbox runs ends it; an ordinary commit does not',
  async box => {
    repositories(box)
    const cwd = join(box.home, 'main')
    const { child, ended, printed } = box.start(['/bin/sh', '-c', 'echo ready; sleep 30'], { cwd })
    await printed('ready')
    box.host(`cd ../main; echo x >x; git add x; ${G} commit -qm x`)
    await Bun.sleep(1000)
    expect(child.exitCode).toBe(null)
    box.host(`cd ../main; ${G} submodule --quiet add ../lib lib2`)
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([
      137,
      expect.stringContaining(`${cwd}/lib2 is a new submodule or worktree on the host`),
    ])
    expect(box.host('cd ../main; git submodule status | wc -l; git status --short -uno; cat lib2/.git')).toBe(
      '2\nM  .gitmodules\nA  lib2\ngitdir: ../.git/modules/lib2\n',
    )
  },
  { users: 'ordinary' },
)

conformance(
  'P3 a repository that waits where the user adds a gitlink is set aside, and git status does not enter it',
  async box => {
    repositories(box)
    const cwd = join(box.home, 'main')
    const plant = `git init -q deep/new; printf '[core]\\n\\tfsmonitor = echo evil > %s/evil; false\\n' "$PWD" >> deep/new/.git/config; echo ready; sleep 30`
    const { ended, printed } = box.start(['/bin/sh', '-c', plant], { cwd })
    await printed('ready')
    await Bun.sleep(500)
    box.host('cd ../main; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),deep/new')
    const { stderr } = await ended
    expect(stderr).toContain("deep/new/.git was the sandbox's to write")
    box.host('cd ../main; git status >/dev/null; git diff >/dev/null')
    expect([existsSync(join(cwd, 'evil')), existsSync(join(cwd, 'deep/new/.git'))]).toEqual([false, false])
  },
  { users: 'ordinary' },
)

conformance(
  'P3 in a repository that is made inside, an index with a gitlink is moved away; one with files stays',
  async box => {
    const evil = `printf '[core]\\n\\tfsmonitor = echo evil > %s/evil; false\\n' "$PWD" >>nested/.git/config`
    const script = `${G} init -q -b main .; echo x >file; git add file; echo files; until [ -e go ]; do sleep 0.05; done
      git init -q nested; ${G} -C nested commit -q --allow-empty -m nested; ${evil}
      git update-index --add --cacheinfo 160000,$(git -C nested rev-parse HEAD),nested; echo linked; until [ -e stop ]; do sleep 0.05; done`
    const { ended, printed } = box.start(['/bin/sh', '-c', script])
    await printed('files')
    await Bun.sleep(800)
    expect(box.host('git ls-files; touch go')).toBe('file\n')
    await printed('linked')
    const gone = '[ ! -e .git/index ]'
    box.host(
      `for i in $(seq 100); do ${gone} && break; sleep 0.05; done; ${gone}; git status >/dev/null; touch stop`,
    )
    const { stderr } = await ended
    expect(stderr).toContain('.git/index appeared (file) and was moved to')
    expect(stderr).toContain(`made or changed during the run at ${box.project}/nested`)
    expect(existsSync(join(box.project, 'evil'))).toBe(false)
  },
  ON_THE_HOST,
)

conformance(
  'P24 a submodule that was added inside waits for consent, and then git status works on the host',
  async box => {
    box.host(`git init -q -b main .; echo source >.git/info/exclude; git config user.name A; git config user.email a@b.test
      git init -q source; cd source; echo lib >lib.txt; git add .; ${G} commit -qm lib; cd ..; ${G} commit -q --allow-empty -m first`)
    const { code, stderr } = await box.sh(
      `set -e; ${G} submodule --quiet add "$PWD/source" deep/lib; ${G} commit -qm sub; cd deep/lib; echo more >more; git add more; ${G} commit -qm more; git tag inside`,
    )
    expect([code, stderr]).toEqual([0, expect.stringContaining('deep/lib')])
    const pen = `${PEN} git`
    expect(box.host(`git status --short -uno; ${pen} log`)).toContain('deep/lib')
    expect(box.host(`${pen} import --accept || true`)).not.toContain('fail')
    expect(box.host('git log --format=%s; git status --short; git submodule status')).toMatch(
      /^sub\nfirst\n M deep\/lib\n-[0-9a-f]{40} deep\/lib\n$/,
    )
    expect(box.host('cd deep/lib; git log --format=%s; git status --short; git tag; git fsck --strict')).toBe(
      'more\nlib\ninside\n',
    )
  },
)

conformance(
  'P24 after consent to a gitlink, git enters nothing that the sandbox wrote',
  async box => {
    box.host(`git init -q -b main .; ${G} commit -q --allow-empty -m first`)
    const evil = `printf '[core]\\n\\tfsmonitor = echo evil > %s/evil; false\\n' "$PWD"`
    const link = (name: string): string =>
      `git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),${name}`
    const { code } =
      await box.sh(`set -e; for n in HEAD objects/a refs/a; do git update-ref refs/heads/x/$n HEAD; done
      git init -q nested; ${evil} >>nested/.git/config; ${link('nested')}
      mkdir away pointer; git init -q --bare fake; ${evil} >>fake/config; echo "gitdir: $PWD/fake" >away/.git; ${link('away')}
      echo 'gitdir: ../.git/refs/heads/x' >pointer/.git; ${link('pointer')}; ${G} commit -qm links`)
    expect(code).toBe(0)
    box.host(`${PEN} git log; ${PEN} git import --accept || true`)
    expect(
      box.host('git log -1 --format=%s; git ls-files; git status >/dev/null; git diff >/dev/null; ls'),
    ).toBe('links\naway\nnested\npointer\naway\nfake\nnested\npointer\n')
    const left = ['nested', 'away', 'pointer'].filter(name => existsSync(join(box.project, name, '.git')))
    expect(left).toEqual([])
  },
  ON_THE_HOST,
)

conformance(
  'P24 commits with a submodule are not taken over while a sandbox runs',
  async box => {
    box.host(`git init -q -b main .; ${G} commit -q --allow-empty -m first`)
    const script = `git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib; ${G} commit -qm link; echo ready; until [ -e stop ]; do sleep 0.1; done`
    const { ended, printed } = box.start(['/bin/sh', '-c', script])
    await printed('ready')
    const held = 'git for-each-ref refs/pen | grep -q held'
    box.host(`for i in $(seq 100); do ${held} && break; sleep 0.1; done; ${held}`)
    expect(box.host(`${PEN} git log >/dev/null; ${PEN} git import --accept 2>&1 || true`)).toContain(
      'while no sandbox of the project runs',
    )
    expect(box.host('git log --format=%s; git ls-files')).toBe('first\n')
    box.host('touch stop')
    await ended
  },
  ON_THE_HOST,
)

/** Everything below `.git` but objects, refs, logs and the index, which the host's git writes when commits come over. */
const FIXED = `find .git \\( -path .git/objects -o -path .git/refs -o -path .git/logs \\) -prune -o -type f ! -name index ! -name HEAD ! -name packed-refs -printf '%p %m ' -exec sha256sum {} \\; ; find .git -type l`

conformance(
  'P24 a hostile git directory changes nothing of the host’s but refs, objects, logs and index; commits come over',
  async box => {
    box.host(`git init -q -b main .; ${G} commit -q --allow-empty -m first`)
    const before = box.host(FIXED)
    const { code } = await box.sh(`
    ${traps('.git')}; ln -sf /etc/passwd .git/MERGE_MSG; ln -sf ../../../elsewhere .git/refs/heads/link
    rm -f .git/config.worktree; git init -q . 2>/dev/null; git config --unset-all core.hooksPath; rm -rf .git/hooks
    git config core.fsmonitor "echo evil > $PWD/evil"; git config alias.status '!touch evil'
    ${COMMIT}; git tag from-inside; git update-ref refs/heads/-x HEAD; git update-ref refs/replace/$(git rev-parse HEAD) HEAD
    rm -f evil`)
    expect(code).toBe(0)
    expect(box.host(FIXED)).toBe(before)
    expect(
      box.host(
        'git log --format=%s; git tag; git for-each-ref --format="%(refname)" refs/replace refs/heads',
      ),
    ).toBe('inside\nfirst\nfrom-inside\nrefs/heads/main\n')
    expect(box.host('git status --short; git fsck; ls')).toBe('')
  },
)

conformance(
  'P24 a commit that brings a protected path waits for consent; another commit does not',
  async box => {
    box.host(`git init -q -b main .; ${G} commit -q --allow-empty -m first`)
    const { stderr } = await box.sh(
      `id=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$id,.envrc; ${G} commit -qm evil`,
    )
    expect(stderr).toContain('waits for you')
    expect(box.host('git log --format=%s; git status --short')).toBe('first\n')
    await box.sh(`git reset -q --hard HEAD~1; echo fine > fine; git add fine; ${G} commit -qm fine`)
    expect(box.host('git log --format=%s; git status --short; cat fine')).toBe('fine\nfirst\nfine\n')
  },
  ON_THE_HOST,
)
