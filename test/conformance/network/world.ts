/**
 * A machine of the test, made of namespaces: the host of pen, and an outside that answers at every address and
 * logs what it receives. Tests judge by these logs and by the audit, never by what a client received.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DefineTest, skipUnless } from '../../skip.ts'
import { inTurn } from '../conformance.ts'
import { LAUNCHERS, PEN, SLOWER, triesContainers, triesOthers } from '../launcher.ts'
import { seedOf } from '../seed.ts'
import type { TestBackend } from '../test-backend.ts'
import { makeCertificates } from './certificates.ts'
import { Project } from './project.ts'
import { NAME_SERVER } from './zones.ts'

const TEST_USER = 'pentest'
const isRoot = process.getuid?.() === 0
const works = (...argv: [string, ...string[]]) => spawnSync(argv[0], argv.slice(1)).status === 0

export const isReady =
  process.platform === 'linux' &&
  isRoot &&
  existsSync(PEN) &&
  works('unshare', '--net', '--mount', 'ip', 'link', 'add', 'h0', 'type', 'veth', 'peer', 'name', 'o0')

export const inWorld: DefineTest = skipUnless(
  isReady,
  'a machine of namespaces needs root, veth and a built pen (dist/pen)',
)

export interface Kind {
  readonly name: string
  readonly user: string
  /** For containers and virtual machines. Without it the process backend runs. */
  readonly engine?: Engine
  /** Why it cannot be tried here. */
  readonly missing?: string | undefined
}

/** pen's flags and environment, so that it finds the test's own engine. */
export interface Engine {
  readonly isContainer: boolean
  /** What pen cannot fetch in this world. */
  readonly seed?: () => string
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Every promise holds for root and for every other user. */
export const KINDS: readonly Kind[] = [
  { name: 'root', user: 'root' },
  { name: 'an ordinary user', user: TEST_USER },
]

const kindOf = (backend: TestBackend): Kind => ({
  name: backend.name,
  user: backend.who.uid === 0 ? 'root' : TEST_USER,
  missing: backend.missing,
  engine: {
    isContainer: triesContainers,
    flags: ['--backend', backend.backend],
    env: backend.env,
    ...(backend.backend === 'vm' && { seed: () => seedOf(backend) }),
  },
})

/** The same for virtual machines, or for containers of every engine on this machine. */
const OTHERS: readonly Kind[] = triesOthers
  ? LAUNCHERS.map(kindOf).filter(({ missing }) => missing === undefined)
  : []

interface Options {
  readonly timeout?: number
  /**
   * Whether containers and virtual machines are tested too. The gateway is the same host process with the same decisions. Only the
   * door's namespace, its members, and what ends it differ. One or two claims of each promise cover that; all
   * of them would take minutes and test the gateway again. Each claim runs on one engine, in turn.
   */
  readonly containers?: boolean
  /**
   * An ordinary user is enough where root's case is the same: decisions of the gateway, commands on the host, and
   * clients. How the door is made and what is reachable without a rule runs for both.
   */
  readonly users?: 'ordinary'
  /** A program of the machine, by its path. */
  readonly needs?: string
}

export const forEachKind = (
  title: string,
  body: (world: World, project: Project) => Promise<void>,
  { timeout = 60_000, containers = false, users, needs }: Options = {},
): void => {
  const kinds = triesOthers ? (containers ? inTurn(OTHERS) : []) : KINDS
  const isThere = needs === undefined || existsSync(needs)
  const define = isThere ? inWorld : skipUnless(false, `${needs} is not installed`)
  for (const kind of users === 'ordinary' && !triesOthers ? kinds.slice(-1) : kinds) {
    const { missing } = kind
    const defineKind = missing === undefined ? define : skipUnless(false, missing)
    defineKind(
      `${title} (${kind.name})`,
      async () => {
        const world = await World.get()
        using project = world.project(kind)
        await body(world, project)
      },
      timeout * SLOWER,
    )
  }
}

type Log = 'left' | 'loopback' | 'outside' | 'host' | 'dns'

export class World {
  readonly dir: string
  readonly pen: string
  readonly #host: number
  readonly #outside: number
  readonly #seeds = new Map<string, string>()
  static #started: Promise<World> | undefined

  private constructor(dir: string, host: number, outside: number) {
    this.dir = dir
    this.pen = join(dir, 'pen')
    this.#host = host
    this.#outside = outside
  }

  /** One for all tests of a process. It ends with the process. */
  static get(): Promise<World> {
    World.#started ??= World.#start()
    return World.#started
  }

  static async #start(): Promise<World> {
    const dir = mkdtempSync(join(tmpdir(), 'pen-world-'))
    chmodSync(dir, 0o755)
    copyFileSync(PEN, join(dir, 'pen'))
    chmodSync(join(dir, 'pen'), 0o755)
    mkdirSync(join(dir, 'www'))
    makeCertificates(dir)
    writeFileSync(join(dir, 'hosts'), '127.0.0.1 localhost\n127.0.0.1 by-hosts-file.test\n')
    writeFileSync(join(dir, 'resolv.conf'), `nameserver ${NAME_SERVER}\nsearch test\noptions timeout:1\n`)
    for (const log of ['outside', 'host', 'dns']) writeFileSync(join(dir, `${log}.log`), '')
    const script = join(import.meta.dir, 'world.sh')
    const argv = ['--net', '--mount', 'sh', script, dir, process.execPath]
    const started = spawn('unshare', argv, { stdio: ['pipe', 'pipe', 'inherit'] })
    const pids = await new Promise<string>((resolve, reject) => {
      started.stdout.once('data', data => resolve(String(data)))
      started.once('exit', code => reject(new Error(`the world ended with ${code}`)))
    })
    started.unref()
    const [host = 0, outside = 0] = pids.trim().split(' ').map(Number)
    return new World(dir, host, outside)
  }

  project(kind: Kind): Project {
    const project = new Project(this, kind.user, kind.engine)
    const seed = this.#seeds.get(kind.name) ?? this.#remember(kind)
    project.remember(seed)
    return project
  }

  /** What pen detects in its first run on this machine: once for each kind instead of once for each project. */
  #remember(kind: Kind): string {
    const seed = join(this.dir, `seed-${this.#seeds.size}`)
    using first = new Project(this, kind.user, kind.engine)
    const { flags = [], env = {}, seed: prepared } = kind.engine ?? {}
    if (prepared !== undefined) first.remember(prepared())
    first.command(['run', ...flags, '--', 'true'], env)
    renameSync(join(first.home, '.pen/cache'), seed)
    this.#seeds.set(kind.name, seed)
    return seed
  }

  /** Words that start a program on the machine, or outside it. */
  on(place: 'host' | 'outside', user = 'root'): string[] {
    const pid = place === 'host' ? this.#host : this.#outside
    const become = user === 'root' ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups']
    return ['nsenter', '-t', String(pid), '-n', '-m', '--', ...become]
  }

  read(log: Log): string[] {
    return readFileSync(join(this.dir, `${log}.log`), 'utf8')
      .split('\n')
      .filter(line => line !== '')
  }

  /** What comes after this moment. Read later, it is complete. */
  listen(): Heard {
    return new Heard(this)
  }
}

export class Heard {
  readonly #world: World
  readonly #from: Readonly<Record<Log, number>>

  constructor(world: World) {
    const length = (log: Log) => world.read(log).length
    this.#world = world
    this.#from = {
      left: length('left'),
      loopback: length('loopback'),
      outside: length('outside'),
      host: length('host'),
      dns: length('dns'),
    }
  }

  #since(log: Log): string[] {
    return this.#world.read(log).slice(this.#from[log])
  }

  /** Destinations of packets that left the machine: `tcp 198.51.100.10 80`. The name server is not included. */
  get left(): string[] {
    return this.#since('left')
      .map(line => line.split(' '))
      .filter(
        ([protocol, , target, port]) => !(protocol === 'udp' && target === NAME_SERVER && port === '53'),
      )
      .map(([protocol, , target, port = '']) => `${protocol} ${target} ${port}`.trim())
  }

  /** Connections on the machine's own loopback. */
  get loopback(): string[] {
    return this.#since('loopback').map(line => line.split(' ').slice(2, 4).join(' '))
  }

  get requests(): string[] {
    return this.#since('outside')
  }

  get hostRequests(): string[] {
    return this.#since('host')
  }

  /** Names that the name server was asked for. */
  get names(): string[] {
    return this.#since('dns')
  }
}
