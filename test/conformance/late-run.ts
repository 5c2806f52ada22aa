/** A sandbox that answers commands while it runs, and its project. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import { type Options, onEachLauncher } from './conformance.ts'
import { type Launcher, PEN, SLOWER, triesContainers } from './launcher.ts'
import { copySeed } from './seed.ts'

export class LateProject {
  readonly launcher: Launcher
  readonly base: string
  readonly workspace: string
  readonly #env: Readonly<Record<string, string>>

  constructor(launcher: Launcher, repository: 'repository' | 'no repository' = 'repository') {
    this.launcher = launcher
    this.base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-late-')))
    chmodSync(this.base, 0o755)
    this.workspace = `${this.base}/home/project`
    mkdirSync(this.workspace, { recursive: true })
    for (const dir of [`${this.base}/home`, this.workspace])
      chownSync(dir, launcher.who.uid, launcher.who.gid)
    const home = `${this.base}/home`
    this.#env = { PATH: '/usr/bin:/bin', HOME: home, GIT_CONFIG_NOSYSTEM: '1', ...launcher.env }
    mkdirSync(`${home}/.pen`, { mode: 0o700 })
    chownSync(`${home}/.pen`, launcher.who.uid, launcher.who.gid)
    copySeed(launcher, `${home}/.pen`)
    if (repository === 'repository') this.host('git init -q .')
  }

  /** On the host, as the user, in the project. */
  host(script: string): string {
    const [program = '', ...args] = [...this.launcher.who.become, '/bin/sh', '-ec', script]
    const ran = spawnSync(program, args, { cwd: this.workspace, env: this.#env })
    if (ran.status !== 0) throw new Error(`${script}: ${ran.stderr}`)
    return ran.stdout.toString()
  }

  start(...flags: readonly string[]): LateRun {
    const loop = 'while read -r line; do eval "$line" 2>&1; echo "<$?>"; done'
    return new LateRun(
      this.spawn([PEN, 'run', ...this.launcher.flags, ...flags, '--', '/bin/sh', '-c', loop]),
    )
  }

  /** Starts a program on the host, as the user, in the project. */
  spawn(argv: readonly string[]): ChildProcess {
    const [program = '', ...args] = [...this.launcher.who.become, ...argv]
    return spawn(program, args, { cwd: this.workspace, env: this.#env })
  }

  remove(): void {
    rmSync(this.base, { recursive: true, force: true })
  }
}

export interface Answer {
  readonly said: string
  readonly code: number
}

interface Ended {
  readonly code: number | null
  readonly printed: string
}

export class LateRun {
  readonly child: ChildProcess
  readonly #ended: Promise<number | null>
  #out = ''
  #printed = ''

  constructor(child: ChildProcess) {
    this.child = child
    child.stdout?.on('data', (data: Buffer) => {
      this.#out += data.toString()
    })
    child.stderr?.on('data', (data: Buffer) => {
      this.#printed += data.toString()
    })
    child.stdin?.on('error', () => {})
    this.#ended = new Promise(resolve => child.once('close', resolve))
  }

  /** One shell line inside the sandbox. */
  async inside(line: string, timeoutMs = 10_000): Promise<Answer> {
    this.#out = ''
    this.child.stdin?.write(`${line}\n`)
    const watch = new Stopwatch()
    for (;;) {
      const found = /^([\s\S]*)<(\d+)>\n$/.exec(this.#out)
      if (found !== null) return { said: found[1] ?? '', code: Number(found[2]) }
      if (watch.ms > timeoutMs * SLOWER) throw new Error(`no answer to ${line}: ${this.#out}${this.#printed}`)
      await Bun.sleep(1)
    }
  }

  /** Waits until the sandbox answers so, at most one second. A container beside two others may take three. */
  async within1s(line: string, isSo: (answer: Answer) => boolean): Promise<void> {
    const watch = new Stopwatch()
    for (;;) {
      const answer = await this.inside(line)
      if (isSo(answer)) return
      const { ms } = watch
      if (ms > (triesContainers ? 3000 : 1000))
        throw new Error(`after ${Math.round(ms)} ms still: ${line}: ${answer.said}`)
    }
  }

  /** Closes its input. Returns what pen printed at the end. */
  async end(): Promise<Ended> {
    this.child.stdin?.end()
    return await this.ended()
  }

  /** Its input stays open: pen ends it. */
  async ended(): Promise<Ended> {
    return { code: await this.#ended, printed: this.#printed }
  }
}

export const isRefused = ({ said, code }: Answer): boolean => code !== 0 && said.includes('Permission denied')

interface Late {
  readonly project: LateProject
  /** A sandbox that answers commands. */
  readonly start: (...flags: string[]) => Promise<LateRun>
}

/** A test of a sandbox that answers commands, for each launcher. */
export function late(title: string, body: (late: Late) => Promise<void>, options: Options = {}): void {
  const inProject = async (launcher: Launcher): Promise<void> => {
    const project = new LateProject(launcher)
    let run: LateRun | undefined
    const start = async (...flags: string[]): Promise<LateRun> => {
      run = project.start(...flags)
      await run.inside('true')
      return run
    }
    try {
      await body({ project, start })
    } finally {
      run?.child.kill('SIGKILL')
      await run?.end()
      project.remove()
    }
  }
  onEachLauncher(title, inProject, options)
}
