/**
 * One container of an engine. pen finds it by the pid of its first process. It has ended when the process and the
 * engine's record are gone.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import { type ProcessIdentity, startTimeOf } from '../../base/kernel/processes.ts'
import type { Captured } from '../../base/spawn.ts'
import { type ContainerOrder, runArguments } from './arguments.ts'
import { createThenStart, type Release } from './create-then-start.ts'
import { CONTAINER_ID, type Engine, engineError, reasonOf, runEngine, tryEngine } from './engine/engine.ts'
import { isRuntimeFailure, type RuntimeChoice } from './engine/runtimes.ts'
import { unfinishedIn } from './engine/unfinished.ts'
import { isOrphan, SUPERVISOR_LABEL, supervisorLabel } from './supervisor-label.ts'

/**
 * The config of Docker's client would pass proxies to the container. podman works sequentially, and more threads would
 * slow down pen's own preparation. podman exits before garbage collection pays off (38 MB instead of 35).
 */
const clientEnv = ({ name }: Engine): Record<string, string> =>
  name === 'docker' ? { DOCKER_CONFIG: '/nonexistent' } : { GOMAXPROCS: '1', GOGC: 'off' }
const REMOVAL_MS = 10_000
const LEAVING_MS = 500
/** A machine under load may take seconds to start a program. */
const DAEMON_MS = 30_000
const LOOK_MS = 50
/** How long a runtime takes to make a container on a machine under load. */
const LATE_MS = 1000

/** A running attempt to start the container. */
interface Attempt {
  readonly engineDone: Promise<Captured>
  /** The engine's id, which is unique. */
  readonly id: string
  readonly init: number
}

/** Kills a process of a container. Returns false when pen cannot. */
export type Killer = (process: ProcessIdentity) => boolean

const killDirectly: Killer = ({ pid }) => {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch (error) {
    // ESRCH: the process has just ended. Otherwise it belongs to another user.
    return errnoOf(error) === 'ESRCH'
  }
}

/** For containers of another user, until the root helper runs. The engine kills them. */
export const cannotKill: Killer = () => false

export class Container {
  readonly init: number
  killer: Killer
  readonly #engine: Engine
  readonly #id: string
  readonly #engineDone: Promise<Captured>
  readonly #startTime: string | undefined

  private constructor(engine: Engine, { id, init, engineDone }: Attempt, killer: Killer) {
    this.#engine = engine
    this.killer = killer
    this.#id = id
    this.#engineDone = engineDone
    this.init = init
    this.#startTime = startTimeOf(init)
  }

  /**
   * Resolves when the namespaces and mounts exist. The first program is or becomes the exec daemon, which waits. The
   * engine may still be working.
   */
  static async run(
    engine: Engine,
    order: Omit<ContainerOrder, 'runtime'>,
    runtimes: RuntimeChoice,
    /** The name to use when the first one is taken. */
    fallbackName: string,
    {
      release,
      killer = killDirectly,
    }: {
      /** For an order to `create`: resolves when the container may start. */
      readonly release?: Release | undefined
      readonly killer?: Killer
    } = {},
  ): Promise<Container> {
    return new Container(engine, await runOnce(engine, order, runtimes, fallbackName, release), killer)
  }

  /** Kills the first process, and so every process of the container. Checks that the pid was not reused. */
  kill(): boolean {
    if (this.#startTime === undefined || !this.isAlive()) return true
    return this.killer({ pid: this.init, startTime: this.#startTime })
  }

  isAlive(): boolean {
    return this.#startTime !== undefined && startTimeOf(this.init) === this.#startTime
  }

  /** Waits for something from the exec daemon. Rejects when the container ends or does not answer. */
  async whileAlive<T>(awaited: Promise<T>): Promise<T> {
    const lost = Promise.withResolvers<never>()
    const deadline = performance.now() + DAEMON_MS
    const timer = setInterval(() => {
      if (!this.isAlive() || performance.now() > deadline) lost.reject(this.#incomplete())
    }, LOOK_MS)
    void this.#engineDone.then(result => {
      if (result.code !== 0) lost.reject(engineError(this.#engine, result))
    })
    try {
      return await Promise.race([awaited, lost.promise])
    } catch (error) {
      // An errno about a process that has ended does not help the user.
      throw errnoOf(error) !== undefined && !this.isAlive() ? this.#incomplete(error) : error
    } finally {
      lost.promise.catch(() => undefined)
      clearInterval(timer)
    }
  }

  #incomplete(cause?: unknown): PenError {
    return new PenError('BACKEND', {
      what: `the exec daemon ${this.isAlive() ? 'did not answer' : 'ended'} before the sandbox was complete`,
      hint: 'run `pen doctor` to test the engine',
      cause,
    })
  }

  /**
   * For a container whose program is about to exit. The engine then removes it, without a wait. After a timeout it is
   * killed.
   */
  async leave(): Promise<void> {
    const deadline = performance.now() + LEAVING_MS
    for (let wait = 1; this.isAlive(); wait = Math.min(20, wait * 2)) {
      if (performance.now() > deadline) return await this.end()
      await Bun.sleep(wait)
    }
    await this.#engineDone
  }

  /** Kills the container and waits until it is removed. */
  async end(): Promise<void> {
    const deadline = performance.now() + REMOVAL_MS
    for (let wait = 1; this.isAlive() && performance.now() < deadline; wait = Math.min(20, wait * 2)) {
      // The engine can kill it, and does so when it removes it.
      if (!this.kill()) break
      await Bun.sleep(wait)
    }
    // Wait for the start to finish. A start in progress could bring back what was removed.
    await this.#engineDone
    await removeContainer(this.#engine, this.#id)
  }
}

async function runOnce(
  engine: Engine,
  order: Omit<ContainerOrder, 'runtime'>,
  runtimes: RuntimeChoice,
  fallbackName: string,
  release: Release | undefined,
): Promise<Attempt> {
  let { name } = order
  for (const runtime of runtimes.candidates) {
    let answer = await attempt(engine, { ...order, name, runtime }, release)
    if (
      'failed' in answer &&
      answer.id === undefined &&
      /is (already )?in use/.test(reasonOf(answer.failed))
    ) {
      // A killed pen left it, or another pen runs a command now.
      const left = await orphanNamed(engine, name)
      if (left === undefined) name = fallbackName
      else await removeContainer(engine, left)
      answer = await attempt(engine, { ...order, name, runtime }, release)
    }
    if (!('failed' in answer)) {
      runtimes.worked(runtime)
      return answer
    }
    // The container was made, but did not start. Remove it by id, because the name may belong to another container.
    if (answer.id !== undefined) await removeContainer(engine, answer.id)
    else if (answer.failed.code === null) await removeUnreported(engine, name)
    if (runtime === runtimes.candidates.at(-1) || !isRuntimeFailure(answer.failed))
      throw engineError(engine, answer.failed, isWithoutImage(answer.failed) ? 'IMAGE' : 'BACKEND')
  }
  throw new PenError('INTERNAL', { what: 'no OCI runtime was tried' })
}

const isWithoutImage = (result: Captured): boolean =>
  /no such image|image not known|unable to find image/i.test(result.stderr)

interface FailedAttempt {
  readonly failed: Captured
  /** The id, when a container was made despite the failure. */
  readonly id: string | undefined
}

async function attempt(
  engine: Engine,
  order: ContainerOrder,
  release: Release | undefined,
): Promise<Attempt | FailedAttempt> {
  // Engines refuse to overwrite the files of an earlier attempt.
  for (const file of [order.idFile, order.pidFile]) rmSync(file, { force: true })
  const engineDone =
    release === undefined
      ? tryEngine(engine, runArguments(order), { env: clientEnv(engine) })
      : createThenStart(engine, order, release)
  const early = await pollUntil(engineDone, () => firstProcess(order))
  if (early !== undefined) return { engineDone, ...early }
  const failed = await engineDone
  if (failed.code === null && engine.name === 'podman') await killLateStart(order)
  const id = idIn(order.idFile)
  if (failed.code !== 0 || id === undefined) return { failed, id }
  const init = await askFirstProcess(engine, id)
  if (init !== undefined) return { engineDone, id, init }
  await removeContainer(engine, id)
  throw new PenError('BACKEND', {
    what: 'the container ended as soon as it started',
    hint: 'run `pen doctor` to test the engine',
  })
}

/**
 * For a podman that was killed. Its monitor continues, and makes a process that would wait forever for its start.
 * podman's own removal happens before that.
 */
async function killLateStart({ pidFile }: ContainerOrder): Promise<void> {
  for (const late = performance.now() + LATE_MS; performance.now() < late; await Bun.sleep(LOOK_MS)) {
    const init = initIn(pidFile)
    if (init !== undefined) return void killDirectly({ pid: init, startTime: '' })
  }
}

/** podman writes both files before it starts the container. pen can set the container up from then on. */
function firstProcess({ idFile, pidFile }: ContainerOrder): Pick<Attempt, 'id' | 'init'> | undefined {
  const init = initIn(pidFile)
  const id = init === undefined ? undefined : idIn(idFile)
  return init === undefined || id === undefined ? undefined : { id, init }
}

const GLANCE_MS = 2

/** Polls `look` until `over` settles. Undefined when `look` never returned a value. */
async function pollUntil<T>(over: Promise<unknown>, look: () => T | undefined): Promise<T | undefined> {
  let isOver: boolean = false
  const end = over.finally(() => {
    isOver = true
  })
  while (!isOver) {
    const seen = look()
    if (seen !== undefined) return seen
    await Promise.race([end, Bun.sleep(GLANCE_MS)])
  }
  return look()
}

function idIn(file: string): string | undefined {
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  return CONTAINER_ID.test(text) ? text : undefined
}

const initIn = (file: string): number | undefined =>
  existsSync(file) ? pidOf(readFileSync(file, 'utf8')) : undefined

function pidOf(text: string): number | undefined {
  const pid = Number(text.trim())
  return Number.isInteger(pid) && pid > 1 ? pid : undefined
}

const askFirstProcess = async (engine: Engine, id: string): Promise<number | undefined> =>
  pidOf(await runEngine(engine, ['container', 'inspect', '--format', '{{.State.Pid}}', id]))

/** The id of an orphan that has this name. */
async function orphanNamed(engine: Engine, name: string): Promise<string | undefined> {
  const { id, label } = await labelled(engine, name)
  if (id !== '') return isOrphan(label) ? id : undefined
  return (await unfinishedIn(engine)).find(left => left.name === name)?.id
}

/** Only containers that pen left are removed. A container without pen's label belongs to the user. */
export async function orphanId(engine: Engine, name: string): Promise<string | undefined> {
  const { id, label } = await labelled(engine, name)
  return isOrphan(label) ? id : undefined
}

/** Removes the containers with these names whose pen was killed. */
export async function removeOrphans(engine: Engine, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const left = await orphanId(engine, name)
    if (left !== undefined) await removeContainer(engine, left)
  }
}

/** Both are empty when there is no such container, or when it is not pen's. */
async function labelled(
  engine: Engine,
  name: string,
): Promise<{ readonly id: string; readonly label: string }> {
  const format = `{{.Id}} {{index .Config.Labels "${SUPERVISOR_LABEL}"}}`
  const { stdout } = await tryEngine(engine, ['container', 'inspect', '--format', format, name])
  const [id = '', label = ''] = stdout.trim().split(' ')
  return CONTAINER_ID.test(id) ? { id, label } : { id: '', label: '' }
}

/** For an engine client that was killed before it reported what its daemon made. */
async function removeUnreported(engine: Engine, name: string): Promise<void> {
  const { id, label } = await labelled(engine, name)
  if (label === supervisorLabel()) await removeContainer(engine, id)
}

/** A daemon that is down runs nothing. The next start of the sandbox removes what the daemon still lists. */
const GONE = /no such container|cannot connect to the docker daemon/i

/** Succeeds when the engine does not list the container, also when another process removed it. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  const argv =
    engine.name === 'podman'
      ? ['rm', '--force', '--volumes', '--time=0', '--ignore', id]
      : ['rm', '--force', '--volumes', id]
  const deadline = performance.now() + REMOVAL_MS
  for (let wait = 20; ; wait = Math.min(200, wait * 2)) {
    const answer = await tryEngine(engine, argv)
    if (answer.code === 0 || GONE.test(reasonOf(answer))) return
    if (performance.now() > deadline) throw engineError(engine, answer)
    await Bun.sleep(wait)
  }
}
