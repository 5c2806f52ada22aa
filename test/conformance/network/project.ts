/** A project with its own home on the test's machine, and runs of pen in it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  fchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { sandboxId } from '../../../src/config/project.ts'
import { auditRecords } from '../../audit-records.ts'
import { Stopwatch } from '../../stopwatch.ts'
import { SLOWER } from '../launcher.ts'
import { copyTree } from '../seed.ts'
import type { Engine, World } from './world.ts'

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
  readonly ms: number
  readonly audit: readonly AuditLine[]
}

export interface AuditLine {
  readonly seq: number
  readonly kind: string
  readonly name?: string
  readonly address?: string
  readonly port?: number
  readonly reason?: string
  readonly fix?: string
  readonly raw?: string
  readonly rule?: string
  readonly connection?: number
  readonly [field: string]: unknown
}

export interface RunOptions {
  readonly allow?: readonly string[]
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Words before pen: `prlimit`, … */
  readonly wrap?: readonly string[]
  readonly timeoutMs?: number
}

export class Project {
  readonly root: string
  readonly home: string
  readonly workspace: string
  readonly stateDir: string
  readonly #world: World
  readonly #engine: Engine | undefined
  readonly user: string
  readonly #owner: readonly [number, number]

  constructor(world: World, user: string, engine?: Engine) {
    this.#world = world
    this.#engine = engine
    this.user = user
    this.#owner = user === 'root' ? [0, 0] : idsOf(user)
    this.root = mkdtempSync(join(tmpdir(), 'pen-net-'))
    chmodSync(this.root, 0o755)
    this.home = join(this.root, 'home')
    this.workspace = join(this.home, 'project')
    this.stateDir = join(this.home, '.pen/sandboxes', sandboxId(this.workspace))
    for (const dir of [this.home, this.workspace]) this.#own(mkdirSync(dir, { recursive: true }) ?? dir, dir)
  }

  get isContainer(): boolean {
    return this.#engine?.isContainer === true
  }

  /** Whether the sandbox has a kernel of its own, and so a loopback that is not the door's. */
  get isMachine(): boolean {
    return this.#engine?.isContainer === false
  }

  get uid(): number {
    return this.#owner[0]
  }

  /** As if pen had run here before. */
  remember(seed: string): void {
    const state = join(this.home, '.pen')
    mkdirSync(state, { mode: 0o700 })
    this.#own(state)
    copyTree(seed, join(state, 'cache'))
  }

  /** pen's state directories that a test has made, down to a path. */
  ownState(path = this.stateDir): void {
    for (let dir = path; dir.length > this.home.length; dir = dirname(dir)) {
      chmodSync(dir, 0o700)
      this.#own(dir)
    }
  }

  write(path: string, text: string): void {
    const full = join(this.workspace, path)
    const made = mkdirSync(dirname(full), { recursive: true })
    if (made !== undefined) this.#own(made)
    // By descriptor: pen may remove it at any time.
    const fd = openSync(full, 'w')
    writeSync(fd, text)
    fchownSync(fd, ...this.#owner)
    closeSync(fd)
  }

  /** Gives a file of another user to the project's user, readable by no other. */
  adopt(path: string): void {
    this.#own(join(this.workspace, path))
    chmodSync(join(this.workspace, path), 0o600)
  }

  /** As an editor does: replaces the old text atomically. */
  writeLive(name: string, text: string): void {
    mkdirSync(this.stateDir, { recursive: true })
    this.ownState()
    const draft = join(this.stateDir, `.${name}.draft`)
    writeFileSync(draft, text, { mode: 0o600 })
    this.#own(draft)
    renameSync(draft, join(this.stateDir, name))
  }

  /** Runs a shell script in the sandbox to its end. */
  async run(script: string, options: RunOptions = {}): Promise<Ran> {
    const stopwatch = new Stopwatch()
    const { child, ended } = this.start(script, options)
    const timer = setTimeout(() => child.kill('SIGKILL'), (options.timeoutMs ?? 50_000) * SLOWER)
    const { code, out, err } = await ended
    clearTimeout(timer)
    return { code, out, err, ms: stopwatch.ms, audit: this.audit() }
  }

  start(script: string, options: RunOptions = {}): Started {
    const { allow = [], flags = [], env = {}, wrap = [] } = options
    const own = this.#engine?.flags ?? []
    const pen = [this.#world.pen, 'run', ...own, ...allow.flatMap(rule => ['--allow', rule]), ...flags]
    const [program = '', ...rest] = [
      ...this.#world.on('host', this.user),
      'env',
      '-C',
      this.workspace,
      ...wrap,
      ...pen,
      '--',
      '/bin/sh',
      '-c',
      script,
    ]
    const child = spawn(program, rest, {
      cwd: this.workspace,
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: this.home,
        TERM: 'dumb',
        ...env,
        ...this.#engine?.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const text = { out: '', err: '' }
    child.stdout?.on('data', (data: Buffer) => {
      text.out += data.toString('latin1')
    })
    child.stderr?.on('data', (data: Buffer) => {
      text.err += data.toString('latin1')
    })
    const ended = new Promise<{ code: number | null; out: string; err: string }>(resolve =>
      child.once('close', code => resolve({ code, ...text })),
    )
    return { child, text, ended }
  }

  /** What `pen logs` prints for the user. */
  logs(...flags: string[]): string {
    return this.pen('logs', ...flags)
  }

  /** Starts another pen command on the host and returns its output. */
  pen(...args: string[]): string {
    return this.command(args).stdout
  }

  /** Runs another pen command on the host to its end. */
  command(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const words = [...this.#world.on('host', this.user), 'env', '-C', this.workspace, `HOME=${this.home}`]
    const set = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const [program = '', ...rest] = [...words, ...set, this.#world.pen, ...args]
    return spawnSync(program, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
  }

  /** All records of all runs, in order. */
  audit(): AuditLine[] {
    return auditRecords<AuditLine>(this.stateDir)
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true })
  }

  #own(...paths: string[]): void {
    for (const path of paths) chownSync(path, ...this.#owner)
  }
}

export interface Started {
  readonly child: ChildProcess
  readonly text: { readonly out: string; readonly err: string }
  readonly ended: Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>
}

function idsOf(user: string): [number, number] {
  if (user === userInfo().username) return [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  const [, , uid, gid] =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find(line => line.startsWith(`${user}:`))
      ?.split(':') ?? []
  return [Number(uid), Number(gid)]
}
