import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'

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

conformance(
  'P3 hooks and settings of worktrees and submodules cannot be changed, and commits work',
  async box => {
    repositories(box)
    const configs = ['main/.git/config', 'main/.git/modules/lib/config'].map(path => join(box.home, path))
    const before = configs.map(path => readFileSync(path, 'utf8'))
    for (const [what, cwd, gitDir] of WHERE) {
      const { stdout } = await box.sh(`{ ${traps(gitDir)}; } 2>/dev/null; ${COMMIT} && echo committed`, {
        cwd: join(box.home, cwd),
      })
      expect([what, stdout]).toEqual([what, 'committed\n'])
      expect([what, configs.map(path => readFileSync(path, 'utf8'))]).toEqual([what, before])
      for (const repository of ['main', 'main/lib', 'tree', 'main/inner', 'lib'])
        box.host(
          `cd ../${repository}; git -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m outside; git status >/dev/null`,
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
)

conformance(
  'P5 a worktree lost with the sandbox and a setting that git could not write are reported',
  async box => {
    box.host('git init -q -b main .; git -c user.name=A -c user.email=a@b.test commit -q --allow-empty -m i')
    const quiet = await box.sh('sleep 0.3; git worktree add -q inner; git -C inner status')
    expect(quiet.stderr).not.toMatch(/worktrees were made|tried to change/)
    const { stderr } = await box.sh('sleep 0.3; git worktree add -q /tmp/outer; git config a.b c; sleep 0.1')
    expect(stderr).toContain('where nothing of a sandbox stays: /tmp/outer;')
    expect(stderr).toContain(`tried to change ${join(box.project, '.git/config')} and could not`)
  },
)
