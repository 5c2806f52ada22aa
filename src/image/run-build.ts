/** Runs the engine's build within its limits: shows and logs its output, and lets a person stop it. */
import { closeSync, constants, createReadStream, openSync, readFileSync, writeSync } from 'node:fs'
import type { BuildNetwork } from '../backend/container/build-arguments.ts'
import { type Engine, tryEngine } from '../backend/container/engine/engine.ts'
import { findTool } from '../base/find-tool.ts'
import { pipe } from '../base/kernel/descriptor.ts'
import { signal } from '../base/kernel/end-processes.ts'
import { listTree } from '../base/kernel/processes.ts'
import { processorsOf } from '../base/kernel/processors.ts'
import { startProgram } from '../base/start-program.ts'
import type { CgroupLimit } from '../limits/cgroup.ts'
import { DiskWatch } from '../limits/disk-watch.ts'
import type { LimitHit } from '../limits/limit-hit.ts'
import { memoryOf } from '../limits/process-usage.ts'
import type { Limits } from '../policy/policy.ts'
import { eachLine } from './engine-lines.ts'

/**
 * Engines limit the open files of a build's steps, and memory and processors if they have the cgroups for it. Processes, time and growth
 * of the engine's storage are watched here. A build that exceeds a limit is killed.
 */
interface BuildLimits {
  readonly limits: Limits
  /** The limits that the engine enforces. */
  readonly held: readonly CgroupLimit[]
  readonly engine: Engine
  /** Where the engine stores what a build adds. */
  readonly storage: string
  readonly network: BuildNetwork
}

interface BuildRun extends BuildLimits {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  readonly show: (line: string) => void
  /** Kills the build's programs, so that the engine ends and cleans up. */
  readonly endPrograms: () => boolean
}

const MAX_LOG = 8 * 2 ** 20
/** Much longer than an engine needs to notice a failed step and remove its container. */
const GRACE_MS = 2000

const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** How the engine ended, and pen's exit code if a person stopped it. */
interface BuildResult {
  readonly code: number
  readonly stopped: number | undefined
  /** The limit that ended the build. */
  readonly hit: LimitHit | undefined
}

/** How long to wait for remaining output after the engine's end. */
const LINGER_MS = 500

export async function runBuild(run: BuildRun): Promise<BuildResult> {
  const { argv, env, log, show, endPrograms, limits, held, network } = run
  // podman in a held namespace ends with pen, because the build's programs are killed then. Otherwise the kernel signals the engine.
  const setpriv = network.kind === 'namespace' ? undefined : findTool('setpriv')
  const narrowed = held.includes('cpus') ? [] : onProcessors(limits.cpus)
  const tied = setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'TERM', '--']
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  const file = openSync(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  const [readEnd, writeEnd] = pipe()
  const child = startProgram([...tied, ...narrowed, ...argv], {
    // The engine holds both ends of its output pipe, so it survives pen. When pen is killed, the build's programs are killed too,
    // and the engine sees a failed step. It removes its container only if writing that error does not kill it.
    stdio: ['ignore', writeEnd, writeEnd, readEnd],
    // Ctrl-C goes to pen, which ends the build in order.
    detached: true,
    cwd: '/',
    env: { ...env },
  })
  closeSync(writeEnd)
  let ended: keyof typeof SIGNALS | undefined
  const end = (): void => {
    setTimeout(() => child.kill('SIGTERM'), endPrograms() ? GRACE_MS : 0).unref()
    setTimeout(() => child.kill('SIGKILL'), 2 * GRACE_MS).unref()
  }
  const stop = (name: NodeJS.Signals): void => {
    ended ??= name as keyof typeof SIGNALS
    end()
  }
  const watch = watchBuild(run, child.pid, end)
  for (const name of Object.keys(SIGNALS)) process.on(name, stop)
  try {
    let room = MAX_LOG
    const reading = eachLine(createReadStream('', { fd: readEnd }), line => {
      show(line)
      const bytes = Buffer.from(`${line}\n`)
      if (bytes.length <= room) writeSync(file, bytes)
      else if (room > 0)
        writeSync(file, `pen: the rest of the output is not kept: it has more than ${MAX_LOG} bytes\n`)
      room = bytes.length <= room ? room - bytes.length : 0
    })
    const code = await child.exited
    await Promise.race([reading, Bun.sleep(LINGER_MS)])
    return { code, stopped: ended === undefined ? undefined : 128 + SIGNALS[ended], hit: watch.hit() }
  } finally {
    watch.stop()
    for (const name of Object.keys(SIGNALS)) process.off(name, stop)
    closeSync(file)
  }
}

const LOOK_MS = 100

/** `client` is the engine's process. `end` ends the build. */
function watchBuild(bounds: BuildLimits, client: number, end: () => void) {
  const { limits, storage, held } = bounds
  let reached: LimitHit | undefined
  let isOver: boolean = false
  const began = performance.now()
  const reach = (hit: LimitHit): void => {
    reached ??= hit
    void endSteps(bounds, client)
    end()
  }
  const trees = storage === '' ? [] : [storage]
  const disk = new DiskWatch([{ limit: 'disk', bound: limits.disk, trees }], reach)
  const look = async (): Promise<void> => {
    const steps = await stepsOf(bounds, client)
    const usage = [
      ['pids', steps.reduce((sum, { threads }) => sum + threads, 0)],
      ['memory', held.includes('memory') ? 0 : memoryOfAll(steps)],
      ['wall', performance.now() - began],
    ] as const
    for (const [limit, used] of usage)
      if (used > limits[limit]) return reach({ limit, what: 'killed', used, bound: limits[limit], amount: 1 })
    await disk.look(client)
  }
  const again = async (): Promise<void> => {
    while (!isOver && reached === undefined) {
      await look().catch(() => undefined)
      await Bun.sleep(LOOK_MS)
    }
  }
  void again()
  return {
    /** The first limit that was reached. */
    hit: () => reached,
    stop: () => {
      isOver = true
      disk.stop()
    },
  }
}

interface Step {
  readonly pid: number
  readonly threads: number
  /** The first process of its PID namespace. The others end with it. */
  readonly isInit: boolean
}

/** podman's steps are its children. A daemon's steps are in the containers that joined the network. */
async function stepsOf({ engine, network }: BuildLimits, client: number): Promise<Step[]> {
  const roots =
    !engine.daemon || network.kind !== 'container'
      ? [client]
      : (await buildContainers(engine, network.id)).map(({ pid }) => pid)
  return roots.flatMap(root => listTree(root).flatMap(({ pid }) => stepAt(pid) ?? []))
}

/** Engines give each step a PID namespace. A process in one more PID namespace than pen belongs to a step. */
function stepAt(pid: number): Step | undefined {
  const status = statusOf(String(pid))
  const numbers = /^NSpid:\s*(.+)$/m.exec(status)?.[1]?.split(/\s+/) ?? []
  if (numbers.length <= ownDepth()) return undefined
  return {
    pid,
    threads: Number(/^Threads:\s*(\d+)/m.exec(status)?.[1] ?? 1),
    isInit: numbers.at(-1) === '1',
  }
}

let depth: number | undefined
const ownDepth = (): number =>
  (depth ??= /^NSpid:\s*(.+)$/m.exec(statusOf('self'))?.[1]?.split(/\s+/).length ?? 1)

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1')
  } catch {
    return ''
  }
}

const memoryOfAll = (steps: readonly Step[]): number =>
  steps.reduce((sum, { pid }) => {
    const { anonymous, shared } = memoryOf(pid)
    return sum + anonymous + shared
  }, 0)

/** The command prefix that restricts the engine and its children to fewer processors, for an engine without CPU limits. */
function onProcessors(cpus: number): string[] {
  const own = processorsOf(process.pid)
  const taskset = findTool('taskset')
  if (Math.ceil(cpus) >= own.length || taskset === undefined) return []
  return [taskset, '--cpu-list', own.slice(0, Math.ceil(cpus)).join(',')]
}

interface BuildContainer {
  readonly id: string
  readonly pid: number
}

/** Asks the daemon, because the build's own output is hostile. */
async function buildContainers(engine: Engine, network: string): Promise<BuildContainer[]> {
  const ids = (await tryEngine(engine, ['ps', '--quiet', '--no-trunc'])).stdout.split('\n').filter(Boolean)
  const format = '{{.Id}} {{.State.Pid}} {{.HostConfig.NetworkMode}}'
  const { stdout } = await tryEngine(engine, ['container', 'inspect', '--format', format, ...ids])
  return stdout.split('\n').flatMap(line => {
    const [id = '', pid, mode] = line.split(' ')
    return mode === `container:${network}` ? [{ id, pid: Number(pid) }] : []
  })
}

/** Kills all steps at once, so that a forking step cannot outrun the kill. */
async function endSteps(bounds: BuildLimits, client: number): Promise<void> {
  const { engine, network } = bounds
  if (engine.daemon && network.kind === 'container') {
    const ids = (await buildContainers(engine, network.id)).map(({ id }) => id)
    if (ids.length > 0) await tryEngine(engine, ['kill', ...ids])
    return
  }
  for (const { pid, isInit } of await stepsOf(bounds, client)) if (isInit) signal(pid, 'SIGKILL')
}
