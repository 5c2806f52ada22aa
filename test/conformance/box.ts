/** A home with a project for one test: what the sandbox may see, and what it may not. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Launcher, Ran, RunOptions, Started } from './launcher.ts'
import { copySeed } from './seed.ts'

export class Box {
  readonly launcher: Launcher
  readonly root: string
  readonly home: string
  readonly project: string
  readonly #extra: string[] = []

  constructor(launcher: Launcher) {
    this.launcher = launcher
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-conf-')))
    chmodSync(this.root, 0o755)
    this.home = join(this.root, 'home')
    this.project = join(this.home, 'project')
    this.directory(this.project)
    const state = this.directory(join(this.home, '.pen'), 0o700)
    copySeed(launcher, state)
  }

  /** Only the environment that a login would set. */
  env(more: Readonly<Record<string, string | undefined>> = {}): Record<string, string> {
    const all = {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: this.home,
      TERM: 'dumb',
      LANG: 'C.UTF-8',
      ...more,
      ...this.launcher.env,
    }
    return Object.fromEntries(
      Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
  }

  /** The user's own directory, with its parents. */
  directory(path: string, mode = 0o755): string {
    const { uid, gid } = this.launcher.who
    const made = mkdirSync(path, { recursive: true, mode })
    for (let at = path; made !== undefined && at.length >= made.length; at = dirname(at))
      lchownSync(at, uid, gid)
    return path
  }

  /** The user's own file, relative to the project. */
  file(path: string, text: string, mode = 0o644): string {
    const full = path.startsWith('/') ? path : join(this.project, path)
    this.directory(dirname(full))
    writeFileSync(full, text)
    chmodSync(full, mode)
    lchownSync(full, this.launcher.who.uid, this.launcher.who.gid)
    return full
  }

  /** A place outside of the box that is removed with it. */
  elsewhere(path: string): string {
    this.#extra.push(path)
    return path
  }

  start(command: readonly string[], options?: RunOptions): Started {
    return this.launcher.start(this, command, options)
  }
  run(command: readonly string[], options?: RunOptions): Promise<Ran> {
    return this.start(command, options).ended
  }
  /** A shell script in the sandbox. */
  sh(script: string, options?: RunOptions): Promise<Ran> {
    return this.run(['/bin/sh', '-c', script], options)
  }

  /** On the host, as the user, in the project. */
  host(script: string): string {
    const [program = '', ...rest] = [...this.launcher.who.become, '/bin/sh', '-ec', script]
    const ran = spawnSync(program, rest, {
      cwd: this.project,
      env: this.env({ GIT_CONFIG_NOSYSTEM: '1' }),
      encoding: 'utf8',
    })
    if (ran.status !== 0) throw new Error(`${script}: ${ran.status} ${ran.stderr}`)
    return ran.stdout
  }

  /** Every name below a directory, with kind, mode, owner and size, without pen's own state. */
  listing(dir: string = this.home): string[] {
    const out: string[] = []
    const walk = (at: string) => {
      for (const name of readdirSync(at).sort()) {
        const path = join(at, name)
        if (path === join(this.home, '.pen')) continue
        const { mode, uid, gid, size } = lstatSync(path)
        const directory = (mode & 0o170000) === 0o040000
        out.push(
          `${path.slice(this.root.length)} ${mode.toString(8)} ${uid}:${gid}${directory ? '' : ` ${size}`}`,
        )
        if (directory) walk(path)
      }
    }
    walk(dir)
    return out
  }

  remove(): void {
    for (const path of [this.root, ...this.#extra]) rmSync(path, { recursive: true, force: true })
  }
}

/** Quotes a value as one shell word. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
