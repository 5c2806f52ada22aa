/** Rules about requests: asked for, learnt, and for git per repository and direction. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { until } from '../../until.ts'
import type { Project } from './project.ts'
import { runSteps } from './steps.ts'
import { forEachKind, type World } from './world.ts'

const status = (words: string) => `curl -s -m 20 -o /dev/null -w '%{http_code} ' ${words}`

/** The words after `pen` of a command that pen printed. */
const wordsOf = (command: string): string[] =>
  spawnSync('sh', ['-c', `printf '%s\\n' ${command.replace(/^pen /, '')}`], { encoding: 'utf8' })
    .stdout.trim()
    .split('\n')

forEachKind(
  'P7 a held request names method and path, and the printed command lets it continue',
  async (world, project) => {
    const heard = world.listen()
    const running = project.start(`${status('-X POST https://allowed.test/b?x=y')}`, {
      allow: ['GET allowed.test/a'],
      flags: ['--ask'],
    })
    await until(() => project.audit().some(({ kind }) => kind === 'connection-held'), 10_000)
    expect(heard.requests).toEqual([])
    await until(() => running.text.err.includes('waits for you'), 10_000)
    const [, command = ''] = /pen watch, or (pen allow '.*' --session)/.exec(running.text.err) ?? []
    expect(command).toBe("pen allow 'POST allowed.test:443/b' --session")
    project.pen(...wordsOf(command))
    expect((await running.ended).out).toBe('200 ')
    expect(heard.requests.map(line => line.split(' ').slice(-2).join(' '))).toEqual(['allowed.test /b?x=y'])
    expect(project.logs('--all')).toContain('POST /b: waits for approval')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P7 --learn shows the requests of a host with rules about requests, and its command is enough',
  async (world, project) => {
    const script = `${status('https://allowed.test/a')}; ${status('-X POST https://allowed.test/b')}`
    const first = await project.run(script, { allow: ['GET allowed.test/a'], flags: ['--learn'] })
    expect(first.out).toBe('200 403 ')
    const [, command = ''] = /to allow exactly these:\n {2}(pen allow .*)\n?/.exec(first.err) ?? []
    expect(command).toBe("pen allow 'GET allowed.test:443/a' 'POST allowed.test:443/b'")
    project.pen(...wordsOf(command))
    const heard = world.listen()
    const second = await project.run(`${script}; ${status('https://allowed.test/c')}`)
    expect(second.out).toBe('200 200 403 ')
    expect(heard.requests).toHaveLength(2)
  },
  { users: 'ordinary' },
)

const GIT = 'git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main'

/** Bare repositories with one commit each, at `https://allowed.test/git/NAME`. */
function serve(world: World, project: Project): { readonly server: string; readonly path: string } {
  const name = `${project.user}-rules-${process.pid}`
  const server = join(world.dir, 'www/git', name)
  const script = `mkdir -p ${server}; cd ${server}
    for repository in read write other; do
      ${GIT} init -q --bare $repository; git -C $repository config http.receivepack true
      ${GIT} clone -q $repository work-$repository 2>/dev/null; cd work-$repository
      echo $repository >file; ${GIT} add .; ${GIT} commit -qm one; git push -q; cd ..
    done`
  const { status: code, stderr } = spawnSync('sh', ['-ec', script], { cwd: world.dir, encoding: 'utf8' })
  expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  return { server, path: `allowed.test/git/${name}` }
}

forEachKind(
  'P6 git may fetch from one repository and push to another, and neither elsewhere nor the other way',
  async (world, project) => {
    const { server, path } = serve(world, project)
    const push = (where: string, what: string): string =>
      `cd /tmp/${where} && echo ${what} >>file && ${GIT} commit -qam ${what} && git push -q https://${path}/${what}`
    const { steps } = await runSteps(
      project,
      {
        fetch: `git clone -q https://${path}/read /tmp/read && cat /tmp/read/file`,
        again: 'git -C /tmp/read fetch -q',
        push: `${GIT} clone -q https://${path}/read /tmp/write && cd /tmp/write && git push -q https://${path}/write HEAD:refs/heads/new`,
        pushToRead: push('read', 'read'),
        fetchFromWrite: `git clone -q https://${path}/write /tmp/x`,
        fetchOther: `git clone -q https://${path}/other /tmp/y`,
        pushOther: push('read', 'other'),
        tricks: `curl -sS --path-as-is -o /dev/null -w '%{http_code}' "https://${path}/read/../other/info/refs?service=git-upload-pack"`,
        both: `curl -sS -o /dev/null -w '%{http_code}' "https://${path}/read/info/refs?service=git-upload-pack&service=git-receive-pack"`,
      },
      {
        allow: [
          `GET ${path}/read/info/refs?service=git-upload-pack`,
          `POST ${path}/read/git-upload-pack`,
          `GET ${path}/write/info/refs?service=git-receive-pack`,
          `POST ${path}/write/git-receive-pack`,
        ],
      },
    )
    const { fetch, again, push: pushed, tricks, both, ...refused } = steps
    expect([fetch.said, again.code, pushed.code, pushed.said]).toEqual(['read\n', 0, 0, ''])
    for (const [name, { code, said }] of Object.entries(refused)) {
      expect([name, code === 0]).toEqual([name, false])
      expect([name, said]).toEqual([name, expect.stringContaining('403')])
    }
    expect([tricks.said, both.said]).toEqual(['400', '403'])
    const heads = (name: string): string =>
      spawnSync('git', ['for-each-ref', '--format=%(refname)'], { cwd: join(server, name), encoding: 'utf8' })
        .stdout
    expect(['read', 'write', 'other'].map(heads)).toEqual([
      'refs/heads/main\n',
      'refs/heads/main\nrefs/heads/new\n',
      'refs/heads/main\n',
    ])
  },
  { users: 'ordinary' },
)
