/** Repositories of several forms, for the tests of the survey. They are made once, and removed at the end of the process. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RepositoryFacts, surveyRepository } from '../src/survey/git/repository.ts'

export const HOME = '/home/nobody-here'
export const base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-repository-')))
process.on('exit', () => rmSync(base, { recursive: true, force: true }))

export function git(cwd: string, ...args: readonly string[]): void {
  const set = ['user.name=a', 'user.email=a@example.com', 'protocol.file.allow=always'].flatMap(s => [
    '-c',
    s,
  ])
  const env = {
    PATH: process.env['PATH'] ?? '',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
  }
  const { exitCode, stderr } = Bun.spawnSync(['git', ...set, ...args], { cwd, env })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr.toString()}`)
}

export const survey = (path: string, options = {}): RepositoryFacts =>
  surveyRepository(`${base}/${path}`, {
    home: HOME,
    ownRepository: true,
    stateDir: '/proc/nonexistent',
    ...options,
  })

/** A sandbox without mounts writes the host's git directory. */
export const surveyShared = (path: string, options = {}): RepositoryFacts =>
  survey(path, { ownRepository: false, stateDir: '/proc/nonexistent', ...options })

/** Paths relative to the fixture, in short. */
export function shown(facts: RepositoryFacts) {
  const short = (path: string): string => path.replace(`${base}/`, '')
  return {
    kind: facts.kind,
    git: facts.git === undefined ? undefined : short(facts.git.path),
    submodules: facts.git?.submodules.map(({ path }) => short(path)) ?? [],
    records: facts.records,
    empty: facts.emptyModules.map(short),
    protect: facts.protect.map(p => short(p.path)),
    pins: facts.pins.map(short),
    watch: facts.watch.map(w => `${short(w.path)} ${w.rule.kind}`).sort(),
    warnings: facts.warnings.length,
  }
}

export function fresh(name: string): string {
  const dir = `${base}/${name}`
  mkdirSync(dir, { recursive: true })
  return dir
}

git(base, 'init', '-q', '-b', 'main', 'lib')
git(`${base}/lib`, 'commit', '-q', '--allow-empty', '-m', 'one')
git(base, 'init', '-q', '-b', 'main', 'main')
git(`${base}/main`, 'commit', '-q', '--allow-empty', '-m', 'one')
git(`${base}/main`, 'submodule', '--quiet', 'add', `${base}/lib`, 'libs/lib')
git(`${base}/main`, 'worktree', 'add', '-q', '../linked', '-b', 'linked')
git(`${base}/main`, 'worktree', 'add', '-q', 'inner', '-b', 'inner')
