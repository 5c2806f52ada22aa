/**
 * A project with its host repository and the sandbox's own one, without a sandbox that stays: "inside" is git on the
 * sandbox's directory, as an agent would run it. Syncs are real: git boxes, the host's git and pen's records.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { isHostRoot } from '../../src/base/kernel/host-root.ts'
import type { GitDirectory } from '../../src/plan/facts.ts'
import type { HostPath } from '../../src/policy/files/path.ts'
import { heldCommits } from '../../src/repository/consent/held-commits.ts'
import { makeOwnDirectory } from '../../src/repository/copy/make-own-directory.ts'
import type { OwnOptions } from '../../src/repository/own-repository.ts'
import { mergeAside } from '../../src/repository/sync/merge-aside.ts'
import { type SyncResult, syncAll } from '../../src/repository/sync-all.ts'
import { surveyRepository } from '../../src/survey/git/repository.ts'
import { systemEntries } from '../../src/survey/survey.ts'
import { type GitRan, TemporaryRepository, tryGit } from '../temporary-repository.ts'

export const SANDBOX = 'ws-0a1b2c'

/** One for all tests of a process: the copy of /etc in it takes longer than a sync. */
const CACHE = mkdtempSync(`${tmpdir()}/pen-cache-`)
process.on('exit', () => rmSync(CACHE, { recursive: true, force: true }))

/** A project of root's has an unused uid inside. */
const NOBODY = { uid: 0x700a1b2c, gid: 0x700a1b2c, owner: false }

export class TwoRepositories {
  readonly host: TemporaryRepository
  readonly entry: string
  #options: OwnOptions | undefined

  constructor(init: readonly string[] = []) {
    this.host = new TemporaryRepository(init)
    this.entry = `${this.host.base}/state/git/run`
    mkdirSync(`${this.host.base}/state`, { mode: 0o700 })
  }

  /** The sandbox's git directory. Hostile in real life. */
  get own(): string {
    return `${this.entry}/dir`
  }

  get options(): OwnOptions {
    if (this.#options === undefined) throw new Error('call start() first')
    return this.#options
  }

  /** Makes the sandbox's directory from what the host has now. */
  start(project = this.host.top, protectedPaths: readonly string[] = []): this {
    this.#options = this.survey(project, protectedPaths)
    makeOwnDirectory(this.#options.git, this.own, `${this.entry}/synced`)
    return this
  }

  survey(project = this.host.top, protectedPaths: readonly string[] = []): OwnOptions {
    const facts = surveyRepository(project, {
      home: '/nonexistent',
      ownRepository: true,
      stateDir: '/proc/nonexistent',
    })
    if (facts.git === undefined) throw new Error(`no repository: ${facts.warnings.join()}`)
    return {
      git: facts.git,
      records: facts.records,
      emptyModules: facts.emptyModules,
      mounted: [facts.git.path],
      workspace: project,
      heldPaths: protectedPaths.filter(path => existsSync(path)),
      protectedPaths,
      mayWrite: () => true,
      world: {
        facts: {
          system: systemEntries({ profile: 'coding' }, '/nonexistent'),
          identity: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
          unprivilegedUser: isHostRoot() ? NOBODY : undefined,
        },
        sandbox: { id: SANDBOX, stateDir: `${this.host.base}/state` },
        cacheDir: CACHE,
        limits: { memory: 1024 ** 3, pids: 64, disk: 1024 ** 3 } as OwnOptions['world']['limits'],
      },
    }
  }

  /** git in the sandbox, at the top. */
  inside(...args: readonly string[]): string {
    return this.insideAt('.', this.host.top, ...args)
  }

  /** In a worktree or a submodule: `record` is its directory below the sandbox's git directory. */
  insideAt(record: string, workTree: string, ...args: readonly string[]): string {
    const ran = this.tryInside(args, { record, workTree })
    if (ran.code !== 0) throw new Error(`inside: git ${args.join(' ')}: ${ran.stderr}${ran.stdout}`)
    return ran.stdout.trimEnd()
  }

  tryInside(
    args: readonly string[],
    at: { readonly record?: string; readonly workTree?: string; readonly input?: string | Buffer } = {},
  ): GitRan {
    const { record = '.', workTree = this.host.top, input = '' } = at
    // In the sandbox these are mounted.
    const lent = [this.options.git, ...this.options.git.submodules].flatMap(borrowed)
    const env = {
      GIT_DIR: record === '.' ? this.own : `${this.own}/${record}`,
      GIT_WORK_TREE: workTree,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: lent.join(':'),
    }
    return tryGit(workTree, args, { env, input })
  }

  commitInside(path: string, text = path): string {
    this.host.write(path, text)
    this.inside('add', path)
    this.inside('commit', '-q', '-m', `inside ${path}`)
    return this.inside('rev-parse', 'HEAD')
  }

  /** With consent: to what waits now. */
  async sync(hasConsent = false): Promise<SyncResult> {
    const options = { ...this.options, entry: this.entry, dir: this.own as HostPath }
    const held = hasConsent ? await heldCommits(options) : []
    return await syncAll({ ...options, consent: new Set(held.map(({ id }) => id)) })
  }

  /** As `pen git import --merge`. */
  async merge(): Promise<readonly string[]> {
    return await mergeAside({ ...this.options, identity: undefined, empty: `${this.entry}/empty` })
  }

  /** Each file of the host's git directory with its kind, mode and content. */
  listing(): ReadonlyMap<string, string> {
    return listFiles(this.host.dir)
  }

  /** Reflogs count: nothing that was on a branch is lost. */
  isReachableOnHost(commit: string): boolean {
    const { stdout } = tryGit(this.host.top, ['rev-list', '--all', '--reflog'])
    return stdout.split('\n').includes(commit)
  }

  [Symbol.dispose](): void {
    this.host[Symbol.dispose]()
  }
}

const borrowed = ({ path, alternates }: GitDirectory): string[] => [
  `${path}/objects`,
  ...alternates.map(({ from }) => from),
]

export function listFiles(top: string): Map<string, string> {
  const out = new Map<string, string>()
  const walk = (below: string): void => {
    for (const name of readdirSync(`${top}${below}`)) {
      const path = `${below}/${name}`
      const stats = lstatSync(`${top}${path}`)
      const mode = (stats.mode & 0o7777).toString(8)
      if (stats.isDirectory()) {
        out.set(path, `directory ${mode}`)
        walk(path)
      } else if (stats.isFile()) {
        const hash = createHash('sha256')
          .update(readFileSync(`${top}${path}`))
          .digest('hex')
        out.set(path, `file ${mode} ${stats.uid} ${hash}`)
      } else if (stats.isSymbolicLink()) out.set(path, `link ${readlinkSync(`${top}${path}`)}`)
      else out.set(path, 'special')
    }
  }
  walk('')
  return out
}
