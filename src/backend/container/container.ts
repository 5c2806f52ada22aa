/** One container of an engine: found by the number of its first process, and gone when that and the engine's record of it are. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import { type ProcessIdentity, startTimeOf } from '../../base/kernel/processes.ts'
import type { Captured } from '../../base/spawn.ts'
import { type ContainerOrder, runArguments } from './arguments.ts'
import { askEngine, CONTAINER_ID, type Engine, engineError, reasonOf, tryEngine } from './engine/engine.ts'
import { blamesRuntime, type RuntimeChoice } from './engine/runtimes.ts'
import { inTwoSteps, type Release } from './in-two-steps.ts'
import { isLeft, SUPERVISOR_LABEL, supervisorLabel } from './supervisor-label.ts'

/**
 * The configuration of Docker's client would hand proxies on to the container. podman does one thing after the other, and its
 * runtime's threads would only be in the way of what is made ready meanwhile; it ends before collecting its memory pays (38 MB
 * instead of 35).
 */
const clientEnv = ({ name }: Engine): Record<string, string> =>
  name === 'docker' ? { DOCKER_CONFIG: '/nonexistent' } : { GOMAXPROCS: '1', GOGC: 'off' }
const REMOVAL_MS = 10_000
const LEAVING_MS = 500
/** A machine under load may take seconds to start a program. */
const DAEMON_MS = 30_000
const LOOK_MS = 50
/** What a runtime takes to make a container, on a machine under load. */
const LATE_MS = 1000

/** What the engine is doing to start it, and how that ends. */
interface Attempt {
  readonly said: Promise<Captured>
  /** The engine's own, which nobody else's container can have. */
  readonly id: string
  readonly init: number
}

/** How a process of a container is ended. False where there is nobody who could. */
export type Killer = (process: ProcessIdentity) => boolean

const killDirectly: Killer = ({ pid }) => {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch (error) {
    // Gone in this very moment, or not ours.
    return errnoOf(error) === 'ESRCH'
  }
}

/** Of an engine whose containers are another user's, until a helper is there: the engine itself ends it. */
export const killNobody: Killer = () => false

export class Container {
  readonly init: number
  killer: Killer
  readonly #engine: Engine
  readonly #id: string
  readonly #said: Promise<Captured>
  readonly #startTime: string | undefined

  private constructor(engine: Engine, { id, init, said }: Attempt, killer: Killer) {
    this.#engine = engine
    this.killer = killer
    this.#id = id
    this.#said = said
    this.init = init
    this.#startTime = startTimeOf(init)
  }

  /** Its namespaces and mounts exist then, and its first program is or will be the exec daemon, which waits. The engine may still be at it. */
  static async run(
    engine: Engine,
    order: Omit<ContainerOrder, 'runtime'>,
    runtimes: RuntimeChoice,
    /** Another name, for when the first is in use. */
    spare: string,
    {
      release,
      killer = killDirectly,
    }: {
      /** Of an order to `create`: when it is started. */
      readonly release?: Release | undefined
      readonly killer?: Killer
    } = {},
  ): Promise<Container> {
    return new Container(engine, await runOnce(engine, order, runtimes, spare, release), killer)
  }

  /** Everything in it goes with its first process. The number may belong to another by now. */
  kill(): boolean {
    if (this.#startTime === undefined || !this.isAlive()) return true
    return this.killer({ pid: this.init, startTime: this.#startTime })
  }

  isAlive(): boolean {
    return this.#startTime !== undefined && startTimeOf(this.init) === this.#startTime
  }

  /** What the exec daemon is awaited for, or an error when it cannot come any more. */
  async whileAlive<T>(awaited: Promise<T>): Promise<T> {
    const lost = Promise.withResolvers<never>()
    const deadline = performance.now() + DAEMON_MS
    const timer = setInterval(() => {
      if (!this.isAlive() || performance.now() > deadline) lost.reject(this.#incomplete())
    }, LOOK_MS)
    void this.#said.then(said => {
      if (said.code !== 0) lost.reject(engineError(this.#engine, said))
    })
    try {
      return await Promise.race([awaited, lost.promise])
    } catch (error) {
      // What the kernel says of a process that is gone tells nobody anything.
      throw errnoOf(error) !== undefined && !this.isAlive() ? this.#incomplete(error) : error
    } finally {
      lost.promise.catch(() => undefined)
      clearInterval(timer)
    }
  }

  #incomplete(cause?: unknown): PenError {
    return new PenError('BACKEND', {
      what: `the exec daemon ${this.isAlive() ? 'did not answer' : 'ended'} before the sandbox was complete`,
      hint: '`pen doctor` tries the engine',
      cause,
    })
  }

  /** Its program is about to end by itself: then the engine removes it, and nobody waits for that. Else by force. */
  async leave(): Promise<void> {
    const deadline = performance.now() + LEAVING_MS
    for (let wait = 1; this.isAlive(); wait = Math.min(20, wait * 2)) {
      if (performance.now() > deadline) return await this.end()
      await Bun.sleep(wait)
    }
    await this.#said
  }

  /** By force, until nothing of it is left. */
  async end(): Promise<void> {
    const deadline = performance.now() + REMOVAL_MS
    for (let wait = 1; this.isAlive() && performance.now() < deadline; wait = Math.min(20, wait * 2)) {
      // The engine can, and does when it removes it.
      if (!this.kill()) break
      await Bun.sleep(wait)
    }
    // Not beside its start: that could bring back what was removed.
    await this.#said
    await removeContainer(this.#engine, this.#id)
  }
}

async function runOnce(
  engine: Engine,
  order: Omit<ContainerOrder, 'runtime'>,
  runtimes: RuntimeChoice,
  spare: string,
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
      // Of a pen that was killed, or of one that runs a command beside this one.
      const left = await inTheWay(engine, name)
      if (left === undefined) name = spare
      else await removeContainer(engine, left)
      answer = await attempt(engine, { ...order, name, runtime }, release)
    }
    if (!('failed' in answer)) {
      runtimes.worked(runtime)
      return answer
    }
    // It was made, and did not start. By its id: the name may be somebody else's.
    if (answer.id !== undefined) await removeContainer(engine, answer.id)
    else if (answer.failed.code === null) await removeOwn(engine, name)
    if (runtime === runtimes.candidates.at(-1) || !blamesRuntime(answer.failed))
      throw engineError(engine, answer.failed, isWithoutImage(answer.failed) ? 'IMAGE' : 'BACKEND')
  }
  throw new PenError('INTERNAL', { what: 'no OCI runtime was tried' })
}

const isWithoutImage = (said: Captured): boolean =>
  /no such image|image not known|unable to find image/i.test(said.stderr)

interface FailedAttempt {
  readonly failed: Captured
  /** Of what was made all the same. */
  readonly id: string | undefined
}

async function attempt(
  engine: Engine,
  order: ContainerOrder,
  release: Release | undefined,
): Promise<Attempt | FailedAttempt> {
  // Engines refuse to write over one of an earlier attempt.
  for (const file of [order.idFile, order.pidFile]) rmSync(file, { force: true })
  const said =
    release === undefined
      ? tryEngine(engine, runArguments(order), { env: clientEnv(engine) })
      : inTwoSteps(engine, order, release)
  const early = await firstOf(said, () => firstProcess(order))
  if (early !== undefined) return { said, ...early }
  const failed = await said
  if (failed.code === null && engine.name === 'podman') await endLate(order)
  const id = idIn(order.idFile)
  if (failed.code !== 0 || id === undefined) return { failed, id }
  const init = await askFirstProcess(engine, id)
  if (init !== undefined) return { said, id, init }
  await removeContainer(engine, id)
  throw new PenError('BACKEND', {
    what: 'the container ended as soon as it was started',
    hint: '`pen doctor` tries the engine',
  })
}

/**
 * Of a podman that was killed: its monitor goes on without it, and makes a process that would wait for ever for the word to start. What
 * podman itself removes by then it removes too early.
 */
async function endLate({ pidFile }: ContainerOrder): Promise<void> {
  for (const late = performance.now() + LATE_MS; performance.now() < late; await Bun.sleep(LOOK_MS)) {
    const init = initIn(pidFile)
    if (init !== undefined) return void killDirectly({ pid: init, startTime: '' })
  }
}

/** podman writes both before it starts what it has made: from then on there is something to furnish. */
function firstProcess({ idFile, pidFile }: ContainerOrder): Pick<Attempt, 'id' | 'init'> | undefined {
  const init = initIn(pidFile)
  const id = init === undefined ? undefined : idIn(idFile)
  return init === undefined || id === undefined ? undefined : { id, init }
}

const GLANCE_MS = 2

/** What `look` sees before `over`; undefined when that came first. */
async function firstOf<T>(over: Promise<unknown>, look: () => T | undefined): Promise<T | undefined> {
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
  pidOf(await askEngine(engine, ['container', 'inspect', '--format', '{{.State.Pid}}', id]))

/** What has the name, if nobody wants it any more. */
async function inTheWay(engine: Engine, name: string): Promise<string | undefined> {
  const { id, label } = await labelled(engine, name)
  if (id !== '') return isLeft(label) ? id : undefined
  const { unfinishedIn } = await import('./engine/unfinished.ts')
  return (await unfinishedIn(engine)).find(left => left.name === name)?.id
}

/** Only what pen itself left is ever removed: a container without its label is somebody else's. */
export async function leftBehind(engine: Engine, name: string): Promise<string | undefined> {
  const { id, label } = await labelled(engine, name)
  return isLeft(label) ? id : undefined
}

/** Takes away those of these names whose pen was killed. */
export async function removeLeft(engine: Engine, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const left = await leftBehind(engine, name)
    if (left !== undefined) await removeContainer(engine, left)
  }
}

/** Both are empty where there is none, or it is not pen's. */
async function labelled(
  engine: Engine,
  name: string,
): Promise<{ readonly id: string; readonly label: string }> {
  const format = `{{.Id}} {{index .Config.Labels "${SUPERVISOR_LABEL}"}}`
  const { stdout } = await tryEngine(engine, ['container', 'inspect', '--format', format, name])
  const [id = '', label = ''] = stdout.trim().split(' ')
  return CONTAINER_ID.test(id) ? { id, label } : { id: '', label: '' }
}

/** Of an engine's client that was killed before it said what its daemon had made. */
async function removeOwn(engine: Engine, name: string): Promise<void> {
  const { id, label } = await labelled(engine, name)
  if (label === supervisorLabel()) await removeContainer(engine, id)
}

/** Or its daemon is: then nothing of it runs, and whoever starts the sandbox again removes what the daemon still lists. */
const GONE = /no such container|cannot connect to the docker daemon/i

/** Done when the engine does not know it any more, whoever removed it. */
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
