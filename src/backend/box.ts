/**
 * A short process sandbox for a program that pen itself needs to run on hostile files. It has the system's programs, the
 * given mounts, no network and no project. The files may make that program start others. So a box has limits of its own.
 */
import { closeSync } from 'node:fs'
import { newRunId } from '../audit/segment-name.ts'
import { memoryFile, pipe } from '../base/kernel/descriptor.ts'
import type { Bytes, Millis } from '../base/quantity.ts'
import { Bounds } from '../limits/bounds.ts'
import { LimitHandle } from '../limits/limits.ts'
import { setProcessLimit } from '../limits/prlimit.ts'
import type { HostFacts } from '../plan/facts.ts'
import type { Plan, Step } from '../plan/plan.ts'
import { systemSteps } from '../plan/tree.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import type { Limits } from '../policy/policy.ts'
import type { Running } from './backend.ts'
import { fillMemoryFile } from './process/bwrap-inputs.ts'
import { start } from './process/process.ts'

const GIB = 1024 ** 3
const MOST: Limits = {
  cpus: 2,
  memory: GIB as Bytes,
  pids: 64,
  wall: 60_000 as Millis,
  disk: (4 * GIB) as Bytes,
  output: GIB as Bytes,
  files: 1024,
}
const MIB = 1024 ** 2
/** With less, git itself does not work. */
const LEAST = { memory: 256 * MIB, pids: 16, disk: 64 * MIB }
const SCRATCH = (64 * MIB) as Bytes

/** Larger answers go to a descriptor of the caller's. */
const MAX_OUTPUT = 256 * 1024 * 1024
const MAX_ERRORS = 4096

/** Who runs it, and with which programs. */
export interface BoxWorld {
  readonly facts: Pick<HostFacts, 'system' | 'identity' | 'unprivilegedUser'>
  readonly sandbox: { readonly id: string; readonly stateDir: string }
  readonly cacheDir: string
  /** Of the sandbox whose files these are. A box gets no more. */
  readonly limits: Pick<Limits, 'memory' | 'pids' | 'disk'>
}

export interface BoxRun {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Mounts beside the system's directories and `/tmp`. */
  readonly steps: readonly Step[]
  /** A descriptor that the caller closes, or bytes. */
  readonly input: Uint8Array | number
  /** Where standard output goes. The caller closes its own copy. */
  readonly outputTo?: number
  /** The default is a minute. */
  readonly timeoutMs?: number
}

export interface BoxAnswer {
  readonly code: number
  /** Hostile, like everything that the box prints. */
  readonly stdout: Buffer
  readonly stderr: string
}

export async function runInBox(world: BoxWorld, run: BoxRun): Promise<BoxAnswer> {
  const { facts, sandbox, cacheDir } = world
  const id = newRunId()
  const limits = limitsOf(world)
  const bounds = new Bounds({ limits, runId: id, support: undefined })
  const growing = run.steps.flatMap(step => (step.op === 'bind' && step.mode === 'rw' ? [step.from] : []))
  const watch = new LimitHandle(bounds, { growing, output: undefined, placesFile: undefined })
  const memory = typeof run.input === 'number' ? undefined : memoryFile()
  const [outRead, outWrite] = run.outputTo === undefined ? pipe() : [undefined, run.outputTo]
  const [errRead, errWrite] = pipe()
  try {
    if (memory !== undefined && typeof run.input !== 'number') fillMemoryFile(memory, run.input)
    const running = await inTurn(() =>
      start(boxPlan(facts, run, limits), {
        sandbox: { ...sandbox, run: id },
        cacheDir,
        stdio: [memory ?? Number(run.input), outWrite, errWrite],
        execDaemon: false,
        placement: {
          joinFds: bounds.joinFds,
          wrap: bounds.wrap,
          env: bounds.wrapEnv,
          within: spawn => spawn(),
          hasDoor: false,
        },
      }),
    ).finally(() => {
      if (outRead !== undefined) closeSync(outWrite)
      closeSync(errWrite)
    })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      running.kill()
    }, run.timeoutMs ?? MOST.wall)
    const answer = Promise.all([
      outRead === undefined ? Buffer.alloc(0) : collect(outRead, MAX_OUTPUT, () => running.kill()),
      collect(errRead, MAX_ERRORS, () => undefined),
      running.ended.finally(() => clearTimeout(timer)),
    ])
    await hold(running, watch).catch(error => {
      running.kill()
      throw error
    })
    running.begin({ record: () => undefined })
    const [stdout, stderr, ending] = await answer
    const errors = isLate ? 'it took too long, and was ended' : stderr.toString('utf8')
    return { code: ending.kind === 'exit' ? ending.code : 137, stdout, stderr: errors }
  } finally {
    if (memory !== undefined) closeSync(memory)
    await watch.finish()
    await bounds.remove()
  }
}

function limitsOf({ limits }: BoxWorld): Limits {
  const bound = (of: keyof typeof LEAST): number => Math.min(MOST[of], Math.max(LEAST[of], limits[of]))
  return { ...MOST, memory: bound('memory') as Bytes, pids: bound('pids'), disk: bound('disk') as Bytes }
}

/** Before the program starts. */
async function hold(running: Running, watch: LimitHandle): Promise<void> {
  const init = running.initPid()
  if (init === undefined) return
  const { nproc } = watch.bounds
  if (nproc !== undefined) await setProcessLimit(init, { nproc })
  watch.attach(init)
}

let last: Promise<unknown> = Promise.resolve()

/** As root, a start moves pen into another mount namespace for a moment. So one box starts after the other. */
function inTurn<T>(act: () => Promise<T>): Promise<T> {
  const turn = last.then(act, act)
  last = turn.catch(() => undefined)
  return turn
}

const scratch: Step = { op: 'tmpfs', at: '/tmp' as GuestPath, size: SCRATCH, mode: 0o1777 }

function boxPlan(facts: BoxWorld['facts'], { argv, env, steps }: BoxRun, limits: Limits): Plan {
  const instead = facts.unprivilegedUser
  return {
    backend: 'process',
    isolation: 'process',
    soft: false,
    workspace: '/' as HostPath,
    steps: [...systemSteps(facts), scratch, ...steps, { op: 'seal', at: '/' as GuestPath }],
    argv,
    cwd: '/' as GuestPath,
    env: Object.entries(env).map(([name, value]) => ({ name, value, secret: false })),
    hostname: 'pen',
    user: instead === undefined ? facts.identity : { uid: 1000, gid: 1000 },
    runAs: instead === undefined ? 'self' : { uid: instead.uid, gid: instead.gid },
    network: { kind: 'none', why: 'pen runs a program of its own' },
    limits,
    listedExec: false,
    executable: [],
    makeDirectories: [],
    growing: [],
    watch: [],
    gaps: [],
    weaker: [],
    notes: [],
  }
}

/** Polls. `createReadStream` would block a thread of a small pool for each pipe, and two boxes with a pipe between them stop. */
async function collect(fd: number, most: number, onMore: () => void): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const bytes of Bun.file(fd).stream()) {
      length += bytes.length
      if (length <= most) chunks.push(bytes)
      else onMore()
    }
  } finally {
    closeSync(fd)
  }
  return Buffer.concat(chunks)
}
