/**
 * How the promises are tested: every claim is written once, against a launcher, and runs for each backend and
 * each kind of user. Claims are judged by the host's state afterwards, not by what the command says.
 *
 * The suite `conformance` tests the process backend, `conformance-containers` the containers: the same files,
 * with PEN_CONFORMANCE=containers. With PEN_CONFORMANCE=vm they run in virtual machines (`npm run test:engines`).
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { Stopwatch } from '../stopwatch.ts'
import { ANY_BACKEND, PEN, type TestBackend, type Trait } from './test-backend.ts'

export { PEN }

const TEST_USER = 'pentest'

export interface Who {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** Words that run a command as this user. */
  readonly become: readonly string[]
}

export interface RunOptions {
  readonly flags?: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly stdin?: string | Uint8Array
  /** A shell line in which "$@" is pen: for redirections and descriptors. */
  readonly through?: string
  readonly timeoutMs?: number
}

export interface Ran {
  /** Undefined when a signal ended pen itself. */
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
  readonly ms: number
}

export interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<Ran>
  /** Waits until the sandbox has printed this. */
  printed(text: string): Promise<void>
}

/** Where a run takes place. */
export interface Place {
  readonly project: string
  env(more?: RunOptions['env']): Record<string, string>
}

export interface Launcher extends TestBackend {
  start(place: Place, command: readonly string[], options?: RunOptions): Started
}

export const isRoot = process.getuid?.() === 0
const me: Who = {
  name: isRoot ? 'root' : 'this user',
  uid: process.getuid?.() ?? 0,
  gid: process.getgid?.() ?? 0,
  become: [],
}

/** As root, an ordinary user is tested too. scripts/prepare.sh makes the account. */
export const ordinary: Who | undefined = isRoot ? accountOf(TEST_USER) : undefined
export const EVERYBODY: readonly Who[] = ordinary === undefined ? [me] : [me, ordinary]

function accountOf(user: string): Who | undefined {
  const number = (flag: string) => Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout)
  const uid = number('-u')
  const gid = number('-g')
  if (!(uid > 0 && gid > 0)) return undefined
  return {
    name: 'an ordinary user',
    uid,
    gid,
    become: ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups'],
  }
}

const onProcesses = (who: Who): TestBackend => ({
  name: `process, as ${who.name}`,
  who,
  ...ANY_BACKEND,
  flags: ['--backend', 'process', '--offline'],
  traits: new Set<Trait>([
    'bubblewrap',
    'callersMounts',
    'hostKernel',
    'laterMounts',
    'mixedTerminal',
    'ownCgroups',
    'ownUserNamespace',
  ]),
})

/** What a sandbox writes in the project goes to a layer. */
const inReview = (direct: TestBackend): TestBackend => ({
  ...direct,
  name: `${direct.name}, in review`,
  flags: [...direct.flags, '--review'],
})

/** Each test boots a machine. PEN_CONFORMANCE=vm has all of them, the suite `vm` those that share one. */
export const onMachines = (who: Who): TestBackend => ({
  name: `vm, as ${who.name}`,
  who,
  ...ANY_BACKEND,
  backend: 'vm',
  isolation: 'vm',
  flags: ['--backend', 'vm', '--offline'],
  traits: new Set<Trait>(['callersMounts', 'laterMounts']),
  missing: QEMU_MISSING,
})

const QEMU_MISSING =
  spawnSync('qemu-system-x86_64', ['--version']).status === 0 ? undefined : 'QEMU is missing'

/** Commands of pen that start no sandbox are the same on every backend, and run with the first. */
export const triesContainers = process.env['PEN_CONFORMANCE'] === 'containers'
export const triesMachines = process.env['PEN_CONFORMANCE'] === 'vm'
/** The process backend is not tested. */
export const triesOthers = triesContainers || triesMachines
/** Without KVM a guest takes several times as long, and its start takes seconds. */
export const SLOWER = triesMachines ? 5 : 1

// Engines are started only by the tests that use them.
const BACKENDS = triesContainers
  ? await (await import('./container-backends.ts')).containerBackends(EVERYBODY)
  : EVERYBODY.map(triesMachines ? onMachines : onProcesses)

export const launcherOf = (backend: TestBackend): Launcher => ({
  ...backend,
  start: (place, command, options = {}) => {
    const { flags = [], through = '"$@"' } = options
    const pen = [PEN, 'run', ...backend.flags, ...flags, '--', ...command]
    const [program = '', ...rest] = [...backend.who.become, '/bin/sh', '-c', through, 'sh', ...pen]
    const cwd = options.cwd ?? place.project
    return watch(spawn(program, rest, { cwd, env: place.env(options.env) }), options)
  },
})

export const LAUNCHERS: readonly Launcher[] = BACKENDS.map(launcherOf)
/** For claims that also hold with `--review`. */
export const REVIEW_LAUNCHERS: readonly Launcher[] = triesMachines
  ? []
  : BACKENDS.map(inReview).map(launcherOf)

function watch(child: ChildProcess, { stdin, timeoutMs = 50_000 }: RunOptions): Started {
  const stopwatch = new Stopwatch()
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout?.on('data', (data: Buffer) => out.push(data))
  child.stderr?.on('data', (data: Buffer) => err.push(data))
  child.stdin?.on('error', () => {})
  child.stdin?.end(stdin ?? '')
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs * SLOWER)
  const text = (parts: readonly Buffer[]) => Buffer.concat(parts).toString()
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => {
      clearTimeout(timer)
      resolve({
        code: code ?? undefined,
        stdout: text(out),
        stderr: text(err),
        ms: stopwatch.ms,
      })
    })
  })
  return {
    child,
    ended,
    printed: async wanted => {
      const late = performance.now() + 20_000 * SLOWER
      while (!text(out).includes(wanted)) {
        if (performance.now() > late || child.exitCode !== null)
          throw new Error(`not printed: ${wanted}\n${text(out)}${text(err)}`)
        await Bun.sleep(2)
      }
    },
  }
}
