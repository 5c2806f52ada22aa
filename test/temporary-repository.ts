/** A git repository for one test. Its git sees no setting of the user's or the machine's. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const SETTINGS = [
  'user.name=a',
  'user.email=a@example.com',
  'protocol.file.allow=always',
  'init.defaultBranch=main',
  'advice.detachedHead=false',
  'gc.auto=0',
].flatMap(setting => ['-c', setting])

const ENVIRONMENT = {
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_EDITOR: 'true',
  LC_ALL: 'C',
}

export interface GitRan {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export function tryGit(
  cwd: string,
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly input?: string | Buffer } = {},
): GitRan {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...SETTINGS, ...args], {
    cwd,
    env: { ...ENVIRONMENT, ...options.env },
    stdin: Buffer.from(options.input ?? ''),
  })
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
}

export class TemporaryRepository {
  /** The directory that is removed afterwards. The working tree is in it. */
  readonly base: string
  readonly top: string
  /** For git on another git directory with the same working tree. */
  readonly env: Readonly<Record<string, string>>

  constructor(init: readonly string[] = []) {
    this.base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-git-')))
    this.top = `${this.base}/ws`
    this.env = {}
    mkdirSync(this.top)
    this.git('init', '-q', ...init)
  }

  get dir(): string {
    return `${this.top}/.git`
  }

  git(...args: readonly string[]): string {
    return this.at('', ...args)
  }

  /** In a directory below the top. */
  at(below: string, ...args: readonly string[]): string {
    const ran = tryGit(join(this.top, below), args)
    if (ran.code !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr}${ran.stdout}`)
    return ran.stdout.trimEnd()
  }

  /** A command as a person types it. Does not throw. */
  shell(command: string): string {
    const identity = {
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@b.test',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@b.test',
    }
    const env = { ...ENVIRONMENT, ...identity }
    const { stdout, stderr } = Bun.spawnSync(['sh', '-c', command], { cwd: this.top, env })
    return `${stdout}${stderr}`
  }

  /** With another git directory for this working tree. */
  with(gitDir: string, ...args: readonly string[]): string {
    const env = { GIT_DIR: gitDir, GIT_WORK_TREE: this.top }
    const ran = tryGit(this.top, args, { env })
    if (ran.code !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr}${ran.stdout}`)
    return ran.stdout.trimEnd()
  }

  write(path: string, text: string | Buffer): void {
    mkdirSync(dirname(`${this.top}/${path}`), { recursive: true })
    writeFileSync(`${this.top}/${path}`, text)
  }

  /** Commits one file, and returns the commit. */
  commit(path: string, text = path): string {
    this.write(path, text)
    this.git('add', path)
    this.git('commit', '-q', '-m', `${path} ${text}`.slice(0, 60))
    return this.git('rev-parse', 'HEAD')
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true, force: true })
  }
}
