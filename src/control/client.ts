/** Talks to a supervisor. Loaded by every `pen exec`: it stands on little, because a person waits for it. */
import { errnoOf, PenError } from '../base/error.ts'
import { addressOf } from './address.ts'
import { type Answer, AnswerReader, asPenError, encodeRequest, type Plain, type Request } from './messages.ts'
import { ControlSocket } from './socket.ts'
import { asSupervisorOrder, type SupervisorOrder } from './supervisor-order.ts'

/** Longer than a supervisor that lives takes, on a machine that is busy. */
const PATIENCE_MS = 10_000
/** For a stop: what is done to a supervisor that does not answer is the same, by a signal. */
const STOP_MS = 4000

export interface Asked {
  readonly answer: Answer
  readonly socket: ControlSocket
  /** What came behind the answer. */
  readonly rest: Uint8Array
}

/** Undefined where nobody listens: there is no supervisor, or it has just ended. `more` goes with the request, unasked. */
export async function ask(
  stateDir: string,
  request: Request,
  more: readonly Uint8Array[] = [],
): Promise<Asked | undefined> {
  const socket = await connect(stateDir)
  if (socket === undefined) return undefined
  const { promise, resolve, reject } = Promise.withResolvers<Asked | undefined>()
  const patience = request.want === 'stop' || request.want === 'pause' ? STOP_MS : PATIENCE_MS
  const late = setTimeout(() => reject(silent(stateDir)), patience)
  const reader = new AnswerReader()
  socket.attach({
    data: bytes => {
      try {
        const found = reader.push(bytes)
        if (found !== undefined) resolve({ socket, ...found })
      } catch (error) {
        reject(error)
      }
    },
    closed: () => resolve(undefined),
  })
  socket.send(encodeRequest(request))
  for (const bytes of more) socket.send(bytes)
  try {
    return await promise
  } catch (error) {
    socket.destroy()
    throw error instanceof PenError && error.code === 'WIRE' ? otherVersion(stateDir, error) : error
  } finally {
    clearTimeout(late)
  }
}

/** The value of a plain request; undefined where there is no supervisor. */
export async function askFor(
  stateDir: string,
  want: Exclude<Plain, Ending>,
): Promise<{ readonly value: unknown } | undefined> {
  const asked = await ask(stateDir, { want })
  asked?.socket.end()
  return asked === undefined ? undefined : { value: takeValue(asked.answer) }
}

export function takeValue(answer: Answer): unknown {
  if (answer.ok) return answer.value
  throw asPenError(answer.error)
}

export const answers = async (stateDir: string): Promise<boolean> =>
  (await askFor(stateDir, 'ping')) !== undefined

/** What a sandbox that runs was started with. */
export async function askForOrder(stateDir: string): Promise<SupervisorOrder | undefined> {
  const asked = await askFor(stateDir, 'order').catch(() => undefined)
  return asked === undefined ? undefined : asSupervisorOrder(asked.value)
}

/** Whether it was started with the very same. */
export const runsBy = async (stateDir: string, order: SupervisorOrder): Promise<boolean> =>
  Bun.deepEquals(await askForOrder(stateDir), order)

/** For good, or to be started again. */
export type Ending = 'stop' | 'pause'

/** What it refused, in lines for a person; undefined where no supervisor heard it. */
export async function askToStop(stateDir: string, want: Ending): Promise<readonly string[] | undefined> {
  const asked = await ask(stateDir, { want })
  if (asked === undefined) return undefined
  return linesOf(takeValue(asked.answer))
}

/** What was refused since then; undefined where the supervisor is gone. */
export async function askForRefused(stateDir: string, since: number): Promise<readonly string[] | undefined> {
  const asked = await ask(stateDir, { want: 'refused', since }).catch(() => undefined)
  asked?.socket.end()
  return asked?.answer.ok === true ? linesOf(asked.answer.value) : undefined
}

const linesOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(line => typeof line === 'string') : []

async function connect(stateDir: string): Promise<ControlSocket | undefined> {
  const socket = new ControlSocket()
  try {
    const address = addressOf(`${stateDir}/control`)
    try {
      await Bun.connect({ unix: address.path, data: socket, socket: ControlSocket.handlers })
    } finally {
      address.close()
    }
    return socket
  } catch (error) {
    const errno = errnoOf(error)
    if (errno !== undefined && NOBODY.includes(errno)) return undefined
    throw new PenError('STATE', {
      what: `the supervisor of this sandbox cannot be reached (${errno ?? 'unknown error'})`,
      at: `${stateDir}/control`,
      hint: errno === 'EACCES' ? 'it is the sandbox of another user' : 'pen stop ends it',
      cause: error,
    })
  }
}

/** A socket that nobody listens at is what a killed supervisor leaves; one that resets is just ending. */
const NOBODY = ['ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']

const otherVersion = (stateDir: string, cause: PenError): PenError =>
  new PenError('WIRE', {
    what: 'the supervisor of this sandbox is of another version of pen',
    at: `${stateDir}/control`,
    hint: 'pen restart starts it anew with this one',
    cause,
  })

const silent = (stateDir: string): PenError =>
  new PenError('STATE', {
    what: 'the supervisor of this sandbox does not answer',
    at: `${stateDir}/control`,
    hint: 'pen stop ends it',
  })
