/** The binary's client of a supervisor. Every `pen exec` loads it, so it imports little. */
import { addressOf, connectError, controlPath } from './address.ts'
import { exchange } from './execution.ts'
import { type Answer, type PlainRequest, type Request, takeValue } from './messages.ts'
import { ControlSocket } from './socket.ts'
import { asSupervisorOrder, type SupervisorOrder } from './supervisor-order.ts'

/** Shorter for a stop: a supervisor that does not answer is stopped by a signal. */
const STOP_TIMEOUT_MS = 4000

export interface Reply {
  readonly answer: Answer
  readonly socket: ControlSocket
  /** Bytes that arrived after the answer. */
  readonly rest: Uint8Array
}

/** Undefined when no supervisor listens. */
export async function sendRequest(stateDir: string, request: Request): Promise<Reply | undefined> {
  const socket = await connect(stateDir)
  if (socket === undefined) return undefined
  const isStop = request.want === 'stop' || request.want === 'pause'
  const found = await exchange(stateDir, socket, request, isStop ? STOP_TIMEOUT_MS : undefined)
  return found === undefined ? undefined : { socket, answer: found.message, rest: found.rest }
}

/** The value of a plain request. Undefined when no supervisor listens. */
export async function requestValue(
  stateDir: string,
  want: Exclude<PlainRequest, StopKind>,
): Promise<{ readonly value: unknown } | undefined> {
  const reply = await sendRequest(stateDir, { want })
  reply?.socket.end()
  return reply === undefined ? undefined : { value: takeValue(reply.answer) }
}

export const isAnswering = async (stateDir: string): Promise<boolean> =>
  (await requestValue(stateDir, 'ping')) !== undefined

/** The order that a running sandbox was started with. */
export async function requestOrder(stateDir: string): Promise<SupervisorOrder | undefined> {
  const reply = await requestValue(stateDir, 'order').catch(() => undefined)
  return reply === undefined ? undefined : asSupervisorOrder(reply.value)
}

export const isRunningWith = async (stateDir: string, order: SupervisorOrder): Promise<boolean> =>
  Bun.deepEquals(await requestOrder(stateDir), order)

/** `stop` drops the flags of the start. `pause` keeps them for the next start. */
export type StopKind = 'stop' | 'pause'

/** Returns what the sandbox was refused, as lines for a person. Undefined when no supervisor listens. */
export async function requestStop(stateDir: string, want: StopKind): Promise<readonly string[] | undefined> {
  const reply = await sendRequest(stateDir, { want })
  if (reply === undefined) return undefined
  return linesOf(takeValue(reply.answer))
}

/** Refusals since a record number, as lines for a person. Undefined when the supervisor has ended. */
export async function requestRefusals(
  stateDir: string,
  since: number,
): Promise<readonly string[] | undefined> {
  const reply = await sendRequest(stateDir, { want: 'refused', since }).catch(() => undefined)
  reply?.socket.end()
  return reply?.answer.ok === true ? linesOf(reply.answer.value) : undefined
}

const linesOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(line => typeof line === 'string') : []

/** Undefined when no process listens. */
export async function connect(
  stateDir: string,
  path = controlPath(stateDir),
): Promise<ControlSocket | undefined> {
  const socket = new ControlSocket()
  try {
    const address = addressOf(path)
    try {
      await Bun.connect({ unix: address.path, data: socket, socket: ControlSocket.handlers })
    } finally {
      address.close()
    }
    return socket
  } catch (error) {
    const failure = connectError(stateDir, error)
    if (failure === undefined) return undefined
    throw failure
  }
}
