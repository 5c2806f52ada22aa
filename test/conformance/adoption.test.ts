import { expect } from 'bun:test'
import { chmodSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'

/** What git does on the host, with what the sandbox left: the backend has no part in it. */
const ON_THE_HOST = { users: 'ordinary', once: 'git on the host is the same after every backend' } as const

const G = 'git -c user.name=A -c user.email=a@example.com'
/** A repository with a ref, a log and a detached commit that do not cross. */
const MAKE = `${G} init -q -b main .; echo 1 >file; git add file; ${G} commit -qm one; git update-ref refs/wip/mine HEAD
  git checkout -q --detach; ${G} commit -q --allow-empty -m detached; git checkout -q main`

/** pen's state of a project in the home directory. */
function stateOf(box: Box, name: string): string {
  const all = join(box.home, '.pen/sandboxes')
  return join(all, readdirSync(all).find(id => id.startsWith(`${name}-`)) ?? '')
}

conformance(
  'P24 a locked repository that was made inside becomes the host’s own, and nothing of it is lost',
  async box => {
    const { stdout, stderr } = await box.sh(
      `${MAKE}; git rev-parse HEAD@{1}; git config core.fsmonitor evil; chmod 555 .git/objects .git/refs .git; chmod 0 .git/logs; chmod 0 .`,
    )
    const [detached = ''] = stdout.split('\n')
    chmodSync(box.project, 0o755)
    expect(box.host('git log --format=%s; git status --short; git config core.fsmonitor || true')).toBe(
      'one\n',
    )
    const [, kept = ''] = /is kept at (\S+)/.exec(stderr) ?? []
    expect(readdirSync(kept)).toContain('git')
    const inKept = `git --git-dir=${kept}/git`
    expect(
      box.host(`${inKept} cat-file -t ${detached}; ${inKept} for-each-ref --format='%(refname)' refs/wip`),
    ).toBe('commit\nrefs/wip/mine\n')
  },
)

conformance(
  'P24 after a kill, before or after pen took the repository, the next run brings its commits to the host',
  async box => {
    for (const when of ['before', 'after', 'remade']) {
      const cwd = box.directory(join(box.home, when))
      const run = ['/bin/sh', '-c', `${MAKE}; echo ready; sleep 60`]
      const { child, printed, ended } = box.start(run, { cwd, through: 'exec "$@"' })
      await printed('ready')
      child.kill('SIGKILL')
      await ended
      const state = stateOf(box, when)
      const [record = ''] = readdirSync(join(state, 'watching'))
      const entry = join(state, 'git', record)
      // As a kill between two steps of pen leaves it.
      if (when !== 'before') box.host(`sleep 2; mkdir -p ${entry}; mv ${cwd}/.git ${entry}/dir`)
      if (when === 'remade') box.host(`cd ${cwd}; git init -q -b main .`)
      await box.sh('true', { cwd })
      expect([when, box.host(`cd ${cwd}; git log --format=%s main`)]).toEqual([when, 'one\n'])
      expect([when, readdirSync(join(state, 'watching'))]).toEqual([when, []])
    }
  },
  ON_THE_HOST,
)

conformance(
  'P24 a repository that was made inside waits while another sandbox could swap it',
  async box => {
    const cwd = box.directory(join(box.home, 'shared'))
    const sleeping = ['/bin/sh', '-c', 'echo ready; while [ ! -e end ]; do sleep 0.1; done']
    const { printed, ended } = box.start(sleeping, { cwd, through: 'exec "$@"' })
    await printed('ready')
    // What the other sandbox could replace by a link: a directory of the host's git, and the repository itself.
    const { stderr } = await box.sh(MAKE, { cwd })
    expect(stderr).toContain('another sandbox of this project runs')
    const state = stateOf(box, 'shared')
    expect(existsSync(join(state, 'git'))).toBe(false)
    await box.sh('true', { cwd })
    expect(box.host(`cd ${cwd}; git for-each-ref --format='%(refname)' refs/wip`)).toBe('refs/wip/mine\n')
    box.host(`touch ${cwd}/end`)
    await ended
    expect(box.host(`cd ${cwd}; git log --format=%s main; git for-each-ref refs/wip`)).toBe('one\n')
    await box.sh('true', { cwd })
    expect(box.host(`cd ${cwd}; git log --format=%s main`)).toBe('one\n')
    expect(readdirSync(join(state, 'watching'))).toEqual([])
  },
  ON_THE_HOST,
)

/** Each makes git take the top of a project for a repository. */
const BARE: Readonly<Record<string, string>> = {
  'HEAD last': `echo "$MONITOR" >config; mkdir -p objects refs; echo "$HEAD" >HEAD`,
  'HEAD first': `echo "$HEAD" >HEAD; mkdir -p refs objects; echo "$MONITOR" >config`,
  'a link as HEAD': `echo "$MONITOR" >config; mkdir -p objects refs; ln -s refs/heads/main HEAD`,
  'a directory that is renamed': `mkdir -p made/objects made/refs HEAD; rmdir HEAD; echo "$HEAD" >made/HEAD; mv made/* .; echo "$MONITOR" >config`,
  'the rest elsewhere': `git init -q --bare e; echo "$MONITOR" >e/config; echo "$HEAD" >HEAD; echo e >commondir`,
  // As the user's: a project may have a file of this name.
  'a HEAD that was there': `git init -q --bare e; echo "$MONITOR" >e/config; echo "$MONITOR" | tee config >config.worktree; echo "$HEAD" >HEAD; echo e >commondir`,
}

conformance(
  'P3 a bare repository at the top of a project, in whatever order it is made, is not what the host obeys',
  async box => {
    const was: string[] = []
    for (const [how, make] of Object.entries(BARE)) {
      const cwd = box.directory(join(box.home, how.replaceAll(' ', '-')))
      const evil = join(cwd, 'evil')
      if (how === 'a HEAD that was there') box.file(join(cwd, 'HEAD'), 'mine\n')
      const env = `HEAD='ref: refs/heads/main'; MONITOR='[core]
        repositoryformatversion = 1
        bare = false
        worktree = ${cwd}
        fsmonitor = echo evil > ${evil}; false
        [extensions]
        worktreeConfig = true'`
      // The twin: the same in a subdirectory, which git at the top does not enter.
      const { stderr } = await box.sh(`${env}; ${make}; mkdir sub; cd sub; ${make}; sleep 0.3`, { cwd })
      box.host(`cd ${cwd}; for what in status diff; do git $what >/dev/null 2>&1 || :; done`)
      if (existsSync(evil)) was.push(how)
      expect([how, stderr]).toEqual([how, expect.stringContaining(`${cwd}/`)])
      expect([how, readdirSync(join(cwd, 'sub')).includes('HEAD')]).toEqual([how, true])
    }
    expect(was).toEqual([])
  },
  ON_THE_HOST,
)
