/** Sandboxes that stay, as their user has them: commands of pen in a project, each a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Box } from '../conformance/box.ts'
import { onLinux } from '../conformance/conformance.ts'
import { LAUNCHERS, PEN } from '../conformance/launcher.ts'

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

export class Kept {
  readonly box: Box

  constructor(box: Box) {
    this.box = box
  }

  start(args: readonly string[], options: Options = {}): Command {
    const { box } = this
    const [program = '', ...rest] = [...box.launcher.who.become, PEN, ...args]
    const began = performance.now()
    const child = spawn(program, rest, {
      cwd: options.cwd ?? box.project,
      env: box.env(options.env),
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
        resolve({ code, signal, stdout, stderr, ms: performance.now() - began })
      }),
    )
    const stdout = () => Buffer.concat(out).toString()
    return {
      child,
      ended,
      stdout,
      printed: text =>
        until(
          () => stdout().includes(text),
          () => `${stdout()}${Buffer.concat(err)}`,
        ),
    }
  }

  pen(...args: string[]): Promise<Said> {
    return this.start(args).ended
  }
  sh(script: string, options: Options = {}): Promise<Said> {
    return this.start(['exec', '--', '/bin/sh', '-c', script], options).ended
  }

  get stateDir(): string {
    const sandboxes = join(this.box.home, '.pen/sandboxes')
    return join(sandboxes, readdirSync(sandboxes)[0] ?? 'none')
  }

  /** The keeper's own number, as its lock has it; undefined when there is none. */
  keeper(): number | undefined {
    const lock = join(this.stateDir, 'keeper.lock')
    return existsSync(lock) ? Number(readFileSync(lock, 'utf8').split(' ')[0]) || undefined : undefined
  }

  /** All that a dead or ended keeper could leave. */
  leftovers(): string[] {
    return readdirSync(this.stateDir).filter(name => /^(keeper\.json|control|.*\.lock)$/.test(name))
  }

  audit(): Record<string, unknown>[] {
    const dir = join(this.stateDir, 'audit')
    return readdirSync(dir)
      .sort()
      .flatMap(name => readFileSync(join(dir, name), 'utf8').trim().split('\n'))
      .map(line => JSON.parse(line) as Record<string, unknown>)
  }
}

export async function until(
  what: () => boolean,
  tell: () => string = () => '',
  withinMs = 10_000,
): Promise<void> {
  for (const late = performance.now() + withinMs; !what(); await Bun.sleep(3))
    if (performance.now() > late) throw new Error(`it did not happen: ${what} ${tell()}`)
}

/** Whether a process is there; one that waits for its parent is not. */
export function lives(pid: number): boolean {
  try {
    return !/^State:\t[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

/** One test for each kind of user. Whatever is left of the sandbox at the end is stopped. */
export function kept(title: string, body: (here: Kept) => Promise<void>, timeout = 60_000): void {
  for (const launcher of LAUNCHERS)
    onLinux(
      `${title} (${launcher.name})`,
      async () => {
        const box = new Box(launcher)
        const here = new Kept(box)
        try {
          await body(here)
        } finally {
          if (existsSync(join(box.home, '.pen/sandboxes'))) await here.pen('stop')
          box.remove()
        }
      },
      timeout,
    )
}
