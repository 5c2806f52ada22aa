/** `--review`: what a sandbox writes in the project goes to a layer over it. */
import { expect } from 'bun:test'
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance, type Options } from './conformance.ts'
import { startLoop } from './granted-run.ts'
import { PEN } from './launcher.ts'
import { stateDir } from './pen-command.ts'

const REVIEW = { flags: ['--review'] }
/** The layer of every backend is mounted and looked at by the same code. */
const ONCE: Options = { once: 'what containers share with processes is tried there' }

/** Kind, mode, owner, times, size and content of everything in the project. pen's pin of borrowed commits may come and go. */
function everything(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap(entry => {
    const path = join(dir, entry.name)
    const { mode, uid, mtimeNs, ctimeNs, size, ino } = lstatSync(path, { bigint: true })
    const line = [path, mode, uid, mtimeNs, ctimeNs, ino].join(' ')
    if (entry.isDirectory()) return entry.name === '.git' ? [] : [line, ...everything(path)]
    const content = entry.isSymbolicLink() ? readlinkSync(path) : digest(readFileSync(path))
    return [`${line} ${size} ${content}`]
  })
}

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const upper = (box: Box): string => join(stateDir(box), 'review/upper')

conformance(
  'P23 a project is byte for byte the same after everything in it was rewritten, deleted and renamed',
  async box => {
    for (const name of [
      'rewritten',
      'deleted',
      'renamed',
      'touched',
      'mode',
      'dir/deep/file',
      'gone/file',
      'moved/file',
    ])
      box.file(name, name)
    box.file('.npmrc', 'protected')
    symlinkSync('rewritten', join(box.project, 'link'))
    const before = everything(box.project)
    const ran = await box.sh(
      `echo more >> rewritten; rm deleted; mv renamed other; touch -d 2001-01-01 touched; chmod 700 mode .; rm -r gone
      mv dir/deep/file dir/file; rmdir dir/deep; mv moved elsewhere; ln -sfn dir link; mkdir -p new/dir; echo x > new/dir/file
      mkfifo pipe; ln rewritten hard; echo evil > .npmrc; mkdir .vscode; echo evil > .vscode/tasks.json
      cat rewritten other elsewhere/file new/dir/file dir/file; ls`,
      REVIEW,
    )
    expect(ran.stdout).toBe(
      'rewritten\nmore\nrenamedmoved/filex\ndir/deep/filedir\nelsewhere\nhard\nlink\nmode\nnew\nother\npipe\nrewritten\ntouched\n'.replace(
        'rewritten\n',
        'rewritten',
      ),
    )
    const listed = box.host(`'${PEN}' diff --name-only || :`).trim().split('\n').length
    expect(ran.stderr).toContain(
      `review: ${listed} changes, and the project is as it was; pen diff shows them`,
    )
    expect(everything(box.project)).toEqual(before)
    // The next run goes on where this one ended, and a run without review sees the project.
    const again = await box.sh('cat other; ls -A .vscode; ls deleted; stat -c %a mode; chmod 0 .', REVIEW)
    expect(again.stdout).toBe('renamedtasks.json\n700\n')
    expect((await box.sh('ls', { flags: [] })).stdout).toBe(
      'deleted\ndir\ngone\nlink\nmode\nmoved\nrenamed\nrewritten\ntouched\n',
    )
    // A sandbox cannot lock the next one out.
    const locked = await box.sh('cat other', REVIEW)
    expect([locked.stdout, locked.stderr]).toEqual(['renamed', expect.stringContaining('had locked')])
  },
)

conformance('P23 files of a review belong to the user, on the disk and inside', async box => {
  box.file('old', 'x')
  const ran = await box.sh('id -u; echo x > new; echo x >> old; mkdir dir; stat -c %u . old new dir', REVIEW)
  const [uid, ...owners] = ran.stdout.trim().split('\n')
  expect(owners).toEqual(Array(4).fill(uid))
  for (const name of ['.', 'old', 'new', 'dir'])
    expect([name, lstatSync(join(upper(box), name)).uid]).toEqual([name, box.launcher.who.uid])
})

conformance(
  'P23 commits, a rebase and a worktree inside a review stay inside, and the next run has them',
  async box => {
    const G = 'git -c user.name=A -c user.email=a@example.com'
    box.host(`git init -q -b main .; echo 1 > f; git add f; ${G} commit -qm first`)
    const before = everything(box.project)
    const ran = await box.sh(
      `set -e; echo 2 >> f; ${G} commit -qam second; git checkout -qb topic HEAD~1; echo n > n; git add n; ${G} commit -qm third
      ${G} rebase -q main; git worktree add -q tree main; ls tree; git status --short --untracked-files=no; git log --format=%s`,
      REVIEW,
    )
    expect([ran.stdout, ran.code]).toEqual(['f\nthird\nsecond\nfirst\n', 0])
    expect(everything(box.project)).toEqual(before)
    expect(box.host('git status --short; git log --all --format=%s -- f n; git worktree list | wc -l')).toBe(
      'first\n1\n',
    )
    // A run without a review neither takes them over nor brings them to the host.
    expect((await box.sh('git log --all --format=%s -- f n')).stdout).toBe('first\n')
    expect(box.host('git branch --format="%(refname)"')).toBe('refs/heads/main\n')
    const again = await box.sh('git log --format=%s; git -C tree status --short', REVIEW)
    expect(again.stdout).toBe('third\nsecond\nfirst\n')
  },
  ONCE,
)

conformance(
  'P23 a review in which nothing was changed is a view of the project as it is at the next start',
  async box => {
    const G = 'git -c user.name=A -c user.email=a@example.com'
    box.host(`git init -q -b main .; echo 1 > f; git add f; ${G} commit -qm first`)
    expect((await box.sh('git status --short; cat f', REVIEW)).stdout).toBe('1\n')
    box.host(`echo 2 > f; ${G} commit -qam second; git tag mine`)
    const next = await box.sh('git status --short; git log --format=%s; git tag; cat f', REVIEW)
    expect(next.stdout).toBe('second\nfirst\nmine\n2\n')
    // A commit without a change of a file is a change.
    expect((await box.sh(`${G} commit -q --allow-empty -m inside`, REVIEW)).code).toBe(0)
    expect((await box.sh('git log -1 --format=%s', REVIEW)).stdout).toBe('inside\n')
    expect(
      box.host('git log -1 --format=%s; git for-each-ref --format="%(refname)" refs/heads refs/tags'),
    ).toBe('second\nrefs/heads/main\nrefs/tags/mine\n')
  },
  { users: 'ordinary' },
)

conformance(
  'P23 one sandbox at a time has a layer, and one that was killed leaves nothing mounted',
  async box => {
    box.file('f', 'x')
    const first = startLoop(box, '--review')
    await first.inside('echo first > f')
    const refused = await box.sh('true', REVIEW)
    expect([refused.code === 0, refused.stderr]).toEqual([
      false,
      expect.stringContaining('runs with this review layer'),
    ])
    first.child.kill('SIGKILL')
    const next = await box.sh('cat f', REVIEW)
    expect([next.code, next.stdout]).toEqual([0, 'first\n'])
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(box.root)
    expect(readFileSync(join(box.project, 'f'), 'utf8')).toBe('x')
  },
  { users: 'ordinary' },
)

conformance(
  'P23 granted directories inside the project are in the layer, also one that pen makes',
  async box => {
    box.file('a/b', 'x')
    const ran = await box.sh('echo y > output/file; echo y > a/b; echo z > c; cat output/file', {
      flags: ['--review', '--profile', 'strict', '--write', 'a'],
    })
    expect(ran.stdout).toBe('y\n')
    expect(readdirSync(upper(box)).sort()).toEqual(['a', 'output'])
    expect(readdirSync(box.project)).toEqual(['a'])
  },
  { users: 'ordinary' },
)

conformance(
  'P23 a link that the sandbox left in its layer is no way to mount or write elsewhere',
  async box => {
    const victim = box.directory(join(box.root, 'victim'), 0o777)
    box.file('conf/key', 'S')
    expect((await box.sh(`rm -r conf; ln -s ${victim} conf; ln -s ${victim} data`, REVIEW)).code).toBe(0)
    // The denied file cannot be seen through the link, so nothing is mounted there.
    const denied = await box.sh('ls conf/key || readlink conf', { flags: ['--review', '--deny', 'conf/key'] })
    expect([denied.code, denied.stdout]).toEqual([0, `${victim}\n`])
    box.directory(join(box.project, 'data'))
    const granted = await box.sh('true', { flags: ['--review', '--write', 'data'] })
    expect([granted.code, granted.stderr]).toEqual([2, expect.stringContaining('has something else there')])
    expect(readdirSync(victim)).toEqual([])
  },
  { users: 'ordinary' },
)

conformance(
  'P13 limits.disk counts what a review changes',
  async box => {
    box.directory(join(box.project, 'dir'))
    const ran = await box.sh('head -c 60000000 /dev/zero > dir/big; sleep 20', {
      flags: ['--review', '--limit', 'disk=20MiB'],
    })
    expect([ran.code, ran.stderr]).toEqual([137, expect.stringContaining('limits.disk is 20 MiB')])
  },
  { ...ONCE, only: ({ who }) => who.uid !== 0 },
)
