/** Running sandboxes as their user sees them: commands of pen in a project, each in its own process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sandboxId } from '../../src/config/project.ts'
import { auditRecords } from '../audit-records.ts'
import { Box } from '../conformance/box.ts'
import { type Options as Claim, onLinux } from '../conformance/conformance.ts'
import { LAUNCHERS, PEN } from '../conformance/launcher.ts'
import { Stopwatch } from '../stopwatch.ts'
import { until } from '../until.ts'

export const START = ['start', '--detach', '--backend', 'process', '--offline'] as const

export interface Said {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly ms: number
}

export interface Options {
  readonly cwd?: string
  readonly stdin?: string | Uint8Array
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly timeoutMs?: number
}

export interface Command {
  readonly child: ChildProcess
  readonly ended: Promise<Said>
  readonly stdout: () => string
  printed(text: string): Promise<void>
}

/** So that commands which start the sandbox by themselves use no engine of this machine. */
const CONFIG = '{ "version": 1, "profile": "coding", "backend": "process", "network": { "offline": true } }'

export class ProjectSandbox {
  readonly box: Box
  readonly stateDir: string

  readonly #env: Readonly<Record<string, string>>

  /** `env`: what pen needs to find the test's own engine. */
  constructor(box: Box, env: Readonly<Record<string, string>> = {}) {
    this.box = box
    this.#env = env
    this.stateDir = join(box.home, '.pen/sandboxes', sandboxId(box.project))
  }

  /** The live config that `pen init` and `pen config set` would make. */
  configure(config = CONFIG): void {
    this.box.directory(join(this.box.home, '.pen/sandboxes'), 0o700)
    this.box.directory(this.stateDir, 0o700)
    this.box.file(join(this.stateDir, 'config.json'), config, 0o600)
  }

  start(args: readonly string[], options: Options = {}): Command {
    return this.startOutside([PEN, ...args], options)
  }

  /** A program of the host, as the user. */
  startOutside(words: readonly string[], options: Options = {}): Command {
    const { box } = this
    const [program = '', ...rest] = [...box.launcher.who.become, ...words]
    const stopwatch = new Stopwatch()
    const child = spawn(program, rest, {
      cwd: options.cwd ?? box.project,
      env: box.env({ ...this.#env, ...options.env }),
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout.on('data', (data: Buffer) => out.push(data))
    child.stderr.on('data', (data: Buffer) => err.push(data))
    child.stdin.on('error', () => {})
    child.stdin.end(options.stdin ?? '')
    const late = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 30_000)
    const ended = new Promise<Said>(resolve =>
      child.once('close', (code, signal) => {
        clearTimeout(late)
        const [stdout, stderr] = [out, err].map(parts => Buffer.concat(parts).toString()) as [string, string]
        resolve({ code, signal, stdout, stderr, ms: stopwatch.ms })
      }),
    )
    const stdout = () => Buffer.concat(out).toString()
    return {
      child,
      ended,
      stdout,
      printed: async text => {
        await until(
          () => stdout().includes(text),
          10_000,
          () => `${stdout()}${Buffer.concat(err)}`,
        )
      },
    }
  }

  pen(...args: string[]): Promise<Said> {
    return this.start(args).ended
  }
  sh(script: string, options: Options = {}): Promise<Said> {
    return this.start(['exec', '--', '/bin/sh', '-c', script], options).ended
  }

  /** The supervisor's pid from its lock, or undefined. */
  supervisor(): number | undefined {
    const lock = join(this.stateDir, 'supervisor.lock')
    return existsSync(lock) ? Number(readFileSync(lock, 'utf8').split(' ')[0]) || undefined : undefined
  }

  /** Every supervisor that was started here, also one without any command. */
  supervisors(): number[] {
    const isOurs = (pid: string): boolean => {
      const read = (file: string): string[] => readFileSync(`/proc/${pid}/${file}`, 'latin1').split('\0')
      try {
        return read('cmdline').includes('__supervisor') && read('environ').includes(`HOME=${this.box.home}`)
      } catch {
        return false
      }
    }
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name) && isOurs(name))
      .map(Number)
  }

  /** Everything that a dead or ended supervisor could leave. */
  leftovers(): string[] {
    return readdirSync(this.stateDir).filter(name => /^(supervisor\.json|control|.*\.lock)$/.test(name))
  }

  audit(): Record<string, unknown>[] {
    return auditRecords(this.stateDir)
  }
}

type LifecycleOptions = Pick<Claim, 'timeout' | 'users'>

/** One test for each kind of user, in a project with a config. Stops what is left of the sandbox at the end. */
export const lifecycleTest = (
  title: string,
  body: (here: ProjectSandbox) => Promise<void>,
  options?: LifecycleOptions,
): void =>
  unconfiguredTest(
    title,
    async here => {
      here.configure()
      await body(here)
    },
    options,
  )

/** The same, in a directory that pen does not know yet. */
export function unconfiguredTest(
  title: string,
  body: (here: ProjectSandbox) => Promise<void>,
  { timeout = 60_000, users }: LifecycleOptions = {},
): void {
  for (const launcher of users === 'ordinary' ? LAUNCHERS.slice(-1) : LAUNCHERS)
    onLinux(
      `${title} (${launcher.name})`,
      async () => {
        const box = new Box(launcher)
        const here = new ProjectSandbox(box)
        try {
          await body(here)
        } finally {
          await here.pen('stop')
          box.remove()
        }
      },
      timeout,
    )
}
