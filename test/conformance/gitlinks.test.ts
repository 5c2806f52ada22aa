import { expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'

/** What git does on the host, with what the sandbox left: the backend has no part in it. */
const ON_THE_HOST = { users: 'ordinary', once: 'git on the host is the same after every backend' } as const

const G = 'git -c user.name=A -c user.email=a@example.com -c protocol.file.allow=always'

conformance(
  'P3 a submodule in a submodule is no place for a repository, wherever its git directory lies',
  async box => {
    const deep = 'a/b/c/d/e/f/g/h/i/lib'
    // The first is as old versions of git made it. The second is deeper than pen searches `.git/modules`.
    box.host(`mkdir ../inner ../lib; cd ../inner; git init -q .; ${G} commit -q --allow-empty -m inner
      cd ../lib; git init -q .; ${G} submodule --quiet add ../inner inner; ${G} commit -qm lib
      mkdir ../main; cd ../main; git init -q .; ${G} clone -q ../lib old; ${G} submodule --quiet add ../lib old 2>/dev/null
      ${G} submodule --quiet add ../lib ${deep}; ${G} commit -qm submodules`)
    const cwd = join(box.home, 'main')
    const plant = (lib: string): string =>
      `git init -q ${lib}/inner; printf '[core]\\n\\tfsmonitor = echo evil > %s/evil; false\\n' "$PWD" >> ${lib}/inner/.git/config
       git -C ${lib}/inner -c user.name=a -c user.email=a commit -q --allow-empty -m x`
    await box.sh(`${plant('old')}; ${plant(deep)}; rm -f evil`, { cwd })
    box.host('cd ../main; git status >/dev/null; git diff >/dev/null')
    expect([existsSync(join(cwd, 'evil')), existsSync(join(cwd, 'old/inner/.git'))]).toEqual([false, false])
  },
)

conformance(
  'P3 in a subdirectory, no submodule of the repository around it is a place for a repository of the sandbox',
  async box => {
    box.host(`mkdir ../lib; cd ../lib; git init -q .; ${G} commit -q --allow-empty -m lib
      mkdir ../around; cd ../around; git init -q .; ${G} commit -q --allow-empty -m one
      for path in sub/lib sub/empty; do ${G} submodule --quiet add ../lib $path; done; ${G} commit -qm submodules
      git submodule --quiet deinit -f sub/empty; git config core.hooksPath sub/hooks`)
    const cwd = join(box.home, 'around/sub')
    const evil = (dir: string): string =>
      `rm -rf ${dir}/.git; git init -q ${dir}; printf '[core]\n\tfsmonitor = echo evil > %s/evil; false\n' "$PWD" >>${dir}/.git/config
      git -C ${dir} -c user.name=a -c user.email=a commit -q --allow-empty -m x`
    const plant = `${evil('lib')}; ${evil('empty')}; mkdir hooks; echo 'echo evil >sub/evil' >hooks/pre-commit; chmod +x hooks/pre-commit; rm -f evil; echo ready`
    await box.sh(plant, { cwd })
    box.host(`cd ../around; git status >/dev/null; ${G} commit -q --allow-empty -m two`)
    expect(existsSync(join(cwd, 'evil'))).toBe(false)
    // A new one, while a sandbox runs. The twin: one that is not in the subdirectory.
    const { child, ended, printed } = box.start(['/bin/sh', '-c', `${evil('late')}; echo ready; sleep 30`], {
      cwd,
    })
    await printed('ready')
    await Bun.sleep(600)
    box.host(`cd ../around; ${G} submodule --quiet add ../lib other`)
    await Bun.sleep(600)
    expect(child.exitCode).toBe(null)
    box.host(
      `cd ../around; printf '160000 %s\tsub/late\n' "$(git rev-parse HEAD)" | git update-index --index-info`,
    )
    const { stderr } = await ended
    expect(stderr).toContain(`${join(cwd, 'late')} is a new submodule or worktree on the host`)
    box.host('cd ../around; rm -f sub/evil; git status >/dev/null')
    expect(existsSync(join(cwd, 'evil'))).toBe(false)
  },
  ON_THE_HOST,
)

conformance(
  'P3 a worktree that the user adds in the project while a sandbox runs ends it',
  async box => {
    box.host(
      `git init -q .; ${G} commit -q --allow-empty -m one; git branch a; git worktree add -q ../away a`,
    )
    const { child, ended, printed } = box.start(['/bin/sh', '-c', 'echo ready; sleep 30'])
    await printed('ready')
    await Bun.sleep(800)
    box.host('git worktree add -q ../elsewhere -b b')
    await Bun.sleep(1000)
    expect(child.exitCode).toBe(null)
    box.host('git worktree add -q inner -b c')
    const { stderr } = await ended
    expect(stderr).toContain(`${join(box.project, 'inner')} is a new submodule or worktree on the host`)
    expect(box.host('git -C inner status --porcelain')).toBe('')
  },
  { users: 'ordinary' },
)

conformance(
  'P3 an index in which pen cannot find all submodules any more ends a sandbox that runs',
  async box => {
    box.host(`git init -q .; ${G} commit -q --allow-empty -m one`)
    const { child, ended, printed } = box.start(['/bin/sh', '-c', 'git init -q late; echo ready; sleep 30'])
    await printed('ready')
    const add = (names: string): string =>
      `head=$(git rev-parse HEAD); for name in ${names}; do printf '160000 %s\\t%s\\n' "$head" "$name"; done | git update-index --index-info`
    // The twin: an index that is rewritten all the time is no reason.
    for (let i = 0; i < 20; i++) box.host(`echo ${i} >file; git add file; sleep 0.1`)
    expect(child.exitCode).toBe(null)
    box.host(add('late $(seq 1100)'))
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([137, expect.stringContaining('pen cannot read which submodules')])
  },
  ON_THE_HOST,
)
