import { expect } from 'bun:test'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'

const G =
  'git -c user.name=A -c user.email=a@example.com -c protocol.file.allow=always -c init.defaultBranch=main'

/** A repository with three commits and a submodule's source beside the project. */
const SOURCE = `mkdir ../source ../lib; cd ../lib; ${G} init -q .; echo lib >lib.txt; ${G} add .; ${G} commit -qm lib
  cd ../source; ${G} init -q .; git config uploadpack.allowFilter true; mkdir a b
  for n in 1 2 3; do echo $n >a/$n; echo $n >b/$n; ${G} add .; ${G} commit -qm $n; done; cd ../project; rmdir ../project; cd ..`

/** Each makes the project. Its last line is where pen runs. */
const FORMS: Readonly<Record<string, string>> = {
  'SHA-256': `mkdir project; cd project; ${G} init -q --object-format=sha256 .; ${G} commit -q --allow-empty -m first`,
  'a shallow clone': `${G} clone -q --depth 1 file://$PWD/source project`,
  'a partial clone': `${G} clone -q --filter=blob:none file://$PWD/source project`,
  'a sparse checkout': `${G} clone -q source project; git -C project sparse-checkout set a`,
  'a git directory elsewhere': `${G} clone -q --separate-git-dir=$PWD/elsewhere.git source project; git -C project config core.worktree $PWD/project`,
  'a bare repository with a worktree': `${G} clone -q --bare source store.git; git -C store.git worktree add -q $PWD/project -b work`,
  'a clone that borrows objects': `${G} clone -q --shared source project`,
  'a linked worktree with a submodule': `git -C source worktree add -q $PWD/project -b work; cd project; ${G} submodule --quiet add ../lib lib; ${G} commit -qm sub`,
  'a repository beside .jj': `${G} clone -q source project; mkdir -p project/.jj/repo; echo .jj >>project/.git/info/exclude`,
}

/** The others are mounted as every repository is. */
const MOUNTED_ELSEWHERE = [
  'a git directory elsewhere',
  'a bare repository with a worktree',
  'a clone that borrows objects',
  'a linked worktree with a submodule',
]
const once = 'it is mounted in a container as any repository'

function make(box: Box, form: string): void {
  box.host(`${SOURCE}; ${FORMS[form]}`)
}

for (const form of Object.keys(FORMS))
  conformance(
    `P24 a commit made inside is on the host, and git status is clean: ${form}`,
    async box => {
      make(box, form)
      const { code, stderr } = await box.sh(
        `set -e; git status --short; echo new >new; mkdir -p a; echo new >a/1; ${G} add new a/1; ${G} commit -qm inside; git log --oneline | cat; git status --short`,
        { cwd: box.project },
      )
      expect([code, stderr.split('\n').filter(line => line.includes('git'))]).toEqual([0, []])
      expect(
        box.host('git log -1 --format=%s; git status --short; git fsck 2>&1 | grep -v notice || true'),
      ).toBe('inside\n')
    },
    { users: 'ordinary', ...(!MOUNTED_ELSEWHERE.includes(form) && { once }) },
  )
