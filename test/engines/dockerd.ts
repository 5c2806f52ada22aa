/**
 * A Docker daemon of the test, started and ended without systemd. It changes no bridge, no firewall rule and no
 * kernel setting. Its storage is kept for the next run.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Who } from '../conformance/launcher.ts'
import { spreadOut } from '../spread-out.ts'
import { CACHE, isRoot, makeBase } from './base-image.ts'
import { BASE_NAME, missingCommands, PRUNE, type TestEngine } from './test-engine.ts'

export interface Dockerd extends TestEngine {
  /** The same daemon for another user: root may use every daemon. */
  as(who: Who): TestEngine
  readonly pid: number
  /** Waits for its end. Kills what is left after ten seconds. */
  stop(): Promise<void>
  /** The same, for a process that is ending and cannot await. */
  stopNow(): void
}

/** Tests that run in parallel have one each: daemons cannot share storage. */
const STORES = 6
const START_MS = 20_000
const STOP_MS = 10_000

let shared: Promise<Dockerd> | undefined

/** One for all files of a process, ended with it: starting and stopping one takes seconds. */
export function sharedDockerd(who: Who): Promise<Dockerd> {
  shared ??= startDockerd(who).then(dockerd => {
    process.once('exit', () => dockerd.stopNow())
    return dockerd
  })
  return shared
}

/** For `who`, a member of the group that may use it, which is equivalent to root. */
export async function startDockerd(who: Who): Promise<Dockerd> {
  sweep()
  const dir = mkdtempSync(DAEMONS)
  const started = await firstFree(dir, who)
  if (started === undefined) {
    rmSync(dir, { recursive: true, force: true })
    throw new Error(`all ${STORES} stores of Docker are in use`)
  }
  spawnSync('chmod', ['755', dir])
  const host = `unix://${dir}/docker.sock`
  const env = { DOCKER_HOST: host, DOCKER_CONFIG: join(dir, 'config') }
  const as = (asking: Who): TestEngine => ({
    name: `docker, as ${asking.name}`,
    backend: 'docker',
    who: asking,
    env,
    command: argv => [
      ...asking.become,
      'env',
      ...Object.entries(env).map(([k, v]) => `${k}=${v}`),
      'docker',
      ...argv,
    ],
  })
  const engine: Dockerd = {
    ...as(who),
    as,
    pid: started.pid ?? 0,
    stop: async () => {
      await end(started, dir)
      rmSync(dir, { recursive: true, force: true })
    },
    stopNow: () => {
      started.kill('SIGTERM')
      spawnSync('sh', ['-c', UNTIL_GONE, 'sh', String(started.pid), String(STOP_MS / 100)])
      clear(started, dir)
      rmSync(dir, { recursive: true, force: true })
    },
  }
  try {
    load(engine)
  } catch (error) {
    await engine.stop()
    throw error
  }
  return engine
}

/** Directories of daemons begin with this. Not in a temporary directory of one run: the next run removes what is left. */
export const DAEMONS = '/tmp/pen-docker-'

/** Directories whose daemon is gone, left by tests that were killed. */
function sweep(): void {
  for (const name of readdirSync(dirname(DAEMONS)).filter(entry => entry.startsWith(basename(DAEMONS)))) {
    const dir = join(dirname(DAEMONS), name)
    const pid = pidIn(join(dir, 'pid'))
    // A daemon without a pid file yet is about to write it.
    const made = statSync(dir, { throwIfNoEntry: false })?.mtimeMs
    // Another test process sweeps as well.
    if (made === undefined) continue
    const young = Date.now() - made < 60_000
    if (pid === undefined ? young : isRunning(pid, 'dockerd')) continue
    unmountBelow(dir)
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Waits for a daemon that is about to end: its store has the base, and a new store would have to be filled. */
async function firstFree(dir: string, who: Who): Promise<ChildProcess | undefined> {
  const stores = Array.from({ length: STORES }, (_, n) => join(CACHE, `docker-${n}`))
  const filled = stores.filter(store => existsSync(store))
  for (const late = performance.now() + STOP_MS / 2; performance.now() < late; await Bun.sleep(200)) {
    const started = await launchOneOf(filled, dir, who)
    if (started !== undefined) return started
    if (filled.length === 0) break
  }
  return await launchOneOf(stores, dir, who)
}

async function launchOneOf(
  stores: readonly string[],
  dir: string,
  who: Who,
): Promise<ChildProcess | undefined> {
  for (const store of stores) {
    const child = launch(dir, store, who)
    if (await answers(child, `${dir}/docker.sock`)) return child
    if (child.exitCode !== TAKEN) {
      await end(child, dir)
      throw new Error(`dockerd did not start: ${readFileSync(join(dir, 'log'), 'utf8').slice(-4000)}`)
    }
  }
  return undefined
}

const TAKEN = 75

/** The lock is released by the last process that has it open, including the daemon's containerd. */
function launch(dir: string, store: string, who: Who): ChildProcess {
  mkdirSync(store, { recursive: true, mode: 0o711 })
  const layers = join(store, 'overlay2')
  mkdirSync(layers, { recursive: true, mode: 0o710 })
  spreadOut(layers)
  writeFileSync(join(dir, 'daemon.json'), '{}')
  const words = [
    ...['setpriv', '--pdeathsig', 'TERM', 'flock', '--no-fork', '-n', '-E', String(TAKEN), `${store}.lock`],
    'dockerd',
    `--config-file=${dir}/daemon.json`,
    `--data-root=${store}`,
    `--exec-root=${dir}/exec`,
    `--pidfile=${dir}/pid`,
    `--host=unix://${dir}/docker.sock`,
    `--group=${who.gid}`,
    '--bridge=none',
    '--iptables=false',
    '--ip6tables=false',
    '--ip-forward=false',
    '--ip-masq=false',
    '--userland-proxy=false',
    '--storage-driver=overlay2',
  ]
  const shell = `exec "$@" >'${dir}/log' 2>&1`
  return spawn('sh', ['-c', shell, 'sh', ...words], { stdio: 'ignore' })
}

async function answers(child: ChildProcess, socket: string): Promise<boolean> {
  const late = performance.now() + START_MS
  while (child.exitCode === null && performance.now() < late) {
    if (existsSync(socket) && spawnSync('docker', ['--host', `unix://${socket}`, 'version']).status === 0)
      return true
    await Bun.sleep(50)
  }
  return false
}

async function end(child: ChildProcess, dir: string): Promise<void> {
  child.kill('SIGTERM')
  const late = performance.now() + STOP_MS
  while (child.exitCode === null && child.signalCode === null && performance.now() < late) await Bun.sleep(20)
  clear(child, dir)
}

/** Waits until a child is gone or a zombie, $2 tenths of a second at most. */
const UNTIL_GONE =
  'for i in $(seq "$2"); do case $(cut -d" " -f3 "/proc/$1/stat" 2>&-) in Z | X | "") exit ;; esac; sleep 0.1; done'

/** Kills what did not end by itself. */
function clear(child: ChildProcess, dir: string): void {
  const containerd = pidIn(join(dir, 'exec/containerd/containerd.pid'))
  child.kill('SIGKILL')
  if (containerd !== undefined && isRunning(containerd, 'containerd')) process.kill(containerd, 'SIGKILL')
  unmountBelow(dir)
}

/** Shims of containers that outlived their daemon. */
function unmountBelow(dir: string): void {
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' ')[1] ?? '')
  for (const path of mounted.filter(at => at.startsWith(`${dir}/`)).reverse())
    spawnSync('umount', ['--lazy', path])
}

function pidIn(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined
  } catch {
    return undefined
  }
}

/** Its pid may belong to another process now. */
function isRunning(pid: number, name: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === name
  } catch {
    return false
  }
}

/** Imported once for each content of the base and each store. Leftovers of a killed run are removed. */
function load(engine: Dockerd): void {
  const { key, full } = makeBase()
  const name = `pen-test:${key}`
  const script = `left=$("$@" ps --all --quiet); [ -z "$left" ] || "$@" rm --force $left; "$@" image inspect ${name} >&- 2>&- || "$@" import ${full} ${name} && "$@" tag ${name} ${BASE_NAME} && { "$@" ${PRUNE} || true; }`
  const [program = '', ...rest] = ['sh', '-c', script, 'sh', ...engine.command([])]
  const ran = spawnSync(program, rest, { encoding: 'utf8', timeout: 120_000 })
  if (ran.status !== 0) throw new Error(`docker import: ${ran.status} ${ran.stdout}${ran.stderr}`)
}

/** Why there is no Docker here, or undefined. */
export function dockerMissing(): string | undefined {
  if (!isRoot) return 'dockerd has to be started by root'
  const missing = missingCommands(['dockerd', 'docker', 'containerd', 'runc', 'mmdebstrap'])
  return missing.length === 0 ? undefined : `${missing.join(', ')} missing`
}
