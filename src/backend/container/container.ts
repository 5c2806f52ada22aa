/** One container of an engine: found by the number of its first process, and gone when that and the engine's record of it are. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import type { Captured } from '../../base/spawn.ts'
import { isAlive, startTimeOf } from '../../limits/cgroup-name.ts'
import { type ContainerOrder, runArguments } from './arguments.ts'
import { askEngine, type Engine, engineError, reasonOf, tryEngine } from './engine.ts'
import { blamesRuntime, type RuntimeChoice } from './runtimes.ts'

/** Who keeps it: another pen sees by this whether it is still wanted. */
export const KEEPER_LABEL = 'pen.keeper'

export const keeperLabel = (): string => `${process.pid}:${startTimeOf(process.pid) ?? '0'}`

/** The configuration of Docker's client would hand proxies on to the container. */
const clientEnv = ({ name }: Engine): Record<string, string> =>
  name === 'docker' ? { DOCKER_CONFIG: '/nonexistent' } : {}
const REMOVAL_MS = 10_000
/** A machine under load may take seconds to start a program. */
const AGENT_MS = 30_000
const LOOK_MS = 50

export class Container {
  readonly init: number
  readonly #engine: Engine
  /** The engine's own, which nobody else's container can have. */
  readonly #id: string
  readonly #startTime: string | undefined

  private constructor(engine: Engine, id: string, init: number) {
    this.#engine = engine
    this.#id = id
    this.init = init
    this.#startTime = startTimeOf(init)
  }

  /** It exists then, and its first program is pen's agent, which waits. */
  static async run(
    engine: Engine,
    order: Omit<ContainerOrder, 'runtime'>,
    runtimes: RuntimeChoice,
    /** Another name, for when the first is in use. */
    spare: string,
  ): Promise<Container> {
    const id = await runOnce(engine, order, runtimes, spare)
    try {
      return new Container(engine, id, await firstProcess(engine, id, order.pidFile))
    } catch (error) {
      await removeContainer(engine, id)
      throw error
    }
  }

  /** Everything in it goes with its first process. The number may belong to another by now. */
  kill(): void {
    if (!this.isAlive()) return
    try {
      process.kill(this.init, 'SIGKILL')
    } catch {
      // Gone in this very moment.
    }
  }

  isAlive(): boolean {
    return this.#startTime !== undefined && startTimeOf(this.init) === this.#startTime
  }

  /** What the agent is awaited for, or an error when it cannot come any more. */
  async whileAlive<T>(awaited: Promise<T>): Promise<T> {
    const lost = Promise.withResolvers<never>()
    const deadline = performance.now() + AGENT_MS
    const timer = setInterval(() => {
      if (this.isAlive() && performance.now() < deadline) return
      lost.reject(
        new PenError('BACKEND', {
          what: `pen's agent ${this.isAlive() ? 'did not answer' : 'ended'} before the sandbox was complete`,
          hint: '`pen doctor` tries the engine',
        }),
      )
    }, LOOK_MS)
    try {
      return await Promise.race([awaited, lost.promise])
    } finally {
      clearInterval(timer)
    }
  }

  /** By force, until nothing of it is left. */
  async end(): Promise<void> {
    const deadline = performance.now() + REMOVAL_MS
    for (let wait = 1; this.isAlive() && performance.now() < deadline; wait = Math.min(20, wait * 2)) {
      this.kill()
      await Bun.sleep(wait)
    }
    await removeContainer(this.#engine, this.#id)
  }
}

/** The id of what runs then. */
async function runOnce(
  engine: Engine,
  order: Omit<ContainerOrder, 'runtime'>,
  runtimes: RuntimeChoice,
  spare: string,
): Promise<string> {
  let { name } = order
  for (const runtime of runtimes.candidates) {
    let answer = await attempt(engine, { ...order, name, runtime })
    if (answer.id === undefined && /already in use/.test(reasonOf(answer.said))) {
      // Of a pen that was killed, or of one that runs a command beside this one.
      const left = await leftBehind(engine, name)
      if (left === undefined) name = spare
      else await removeContainer(engine, left)
      answer = await attempt(engine, { ...order, name, runtime })
    }
    if (answer.id !== undefined && answer.said.code === 0) {
      runtimes.worked(runtime)
      return answer.id
    }
    // It was made, and did not start. By its id: the name may be somebody else's.
    if (answer.id !== undefined) await removeContainer(engine, answer.id)
    if (runtime === runtimes.candidates.at(-1) || !blamesRuntime(answer.said))
      throw engineError(engine, answer.said, isWithoutImage(answer.said) ? 'IMAGE' : 'BACKEND')
  }
  throw new PenError('INTERNAL', { what: 'no OCI runtime was tried' })
}

const isWithoutImage = (said: Captured): boolean =>
  /no such image|image not known|unable to find image/i.test(said.stderr)

async function attempt(
  engine: Engine,
  order: ContainerOrder,
): Promise<{ readonly said: Captured; readonly id: string | undefined }> {
  // Both refuse to write over one of an earlier attempt.
  rmSync(order.idFile, { force: true })
  const said = await tryEngine(engine, runArguments(order), { env: clientEnv(engine) })
  const text = existsSync(order.idFile) ? readFileSync(order.idFile, 'utf8').trim() : ''
  return { said, id: ID.test(text) ? text : undefined }
}

const ID = /^[0-9a-f]{64}$/

/** Only what pen itself left is ever removed: a container without its label is somebody else's. */
async function leftBehind(engine: Engine, name: string): Promise<string | undefined> {
  const format = `{{.Id}} {{index .Config.Labels "${KEEPER_LABEL}"}}`
  const { stdout } = await tryEngine(engine, ['container', 'inspect', '--format', format, name])
  const [, id, pid, startTime] = /^([0-9a-f]{64}) (\d+):(\d+)$/.exec(stdout.trim()) ?? []
  if (pid === undefined || startTime === undefined) return undefined
  return isAlive({ pid: Number(pid), startTime }) ? undefined : id
}

async function firstProcess(engine: Engine, id: string, pidFile: string): Promise<number> {
  const text =
    engine.name === 'podman'
      ? readFileSync(pidFile, 'utf8')
      : await askEngine(engine, ['container', 'inspect', '--format', '{{.State.Pid}}', id])
  const pid = Number(text.trim())
  if (Number.isInteger(pid) && pid > 1) return pid
  throw new PenError('BACKEND', {
    what: 'the container ended as soon as it was started',
    hint: '`pen doctor` tries the engine',
  })
}

/** Done when the engine does not know it any more, whoever removed it. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  const argv =
    engine.name === 'podman' ? ['rm', '--force', '--time=0', '--ignore', id] : ['rm', '--force', id]
  const deadline = performance.now() + REMOVAL_MS
  for (let wait = 20; ; wait = Math.min(200, wait * 2)) {
    const answer = await tryEngine(engine, argv)
    if (answer.code === 0 || /no such container/i.test(reasonOf(answer))) return
    if (performance.now() > deadline) throw engineError(engine, answer)
    await Bun.sleep(wait)
  }
}
