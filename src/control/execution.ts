/** What a client does over its connection to a supervisor. The binary and the library share it: each has its own sockets. */
import type { ExecOrder, ExecOutput, Execution } from '../backend/backend.ts'
import { DaemonExecution } from '../backend/daemon-execution.ts'
import { PenError } from '../base/error.ts'
import { encodeOrder, type Order, type Report, ReportReader } from '../protocol/exec-messages.ts'
import { protocolError } from '../protocol/frame.ts'
import { ANSWER_TIMEOUT_MS, controlPath } from './address.ts'
import {
  type Answer,
  answerReader,
  CHANNEL,
  encodeRequest,
  type FirstMessage,
  type Request,
} from './messages.ts'

export interface ControlEvents {
  /** The caller may reuse the bytes afterwards. */
  data(bytes: Uint8Array): void
  /** The last event. */
  closed(): void
}

/** A client's connection to a supervisor. Bun and node:net each have an implementation. */
export interface ControlStream {
  attach(events: ControlEvents): void
  /** Sends in order. Bytes that the other end does not take stay in memory, so the sender bounds them by `room()`. */
  send(bytes: Uint8Array): void
  /** Undefined when every byte is sent. */
  room(): Promise<void> | undefined
  /** Closes after the last sent byte. */
  end(): void
  destroy(): void
}

/**
 * Sends a request and waits for its answer. Undefined when the supervisor closes the connection instead. After the answer the
 * supervisor sends nothing until it gets an order, so no byte arrives before the next `attach()`.
 */
export async function exchange(
  stateDir: string,
  socket: ControlStream,
  request: Request,
  timeoutMs = ANSWER_TIMEOUT_MS,
): Promise<FirstMessage<Answer> | undefined> {
  const fail = (code: 'STATE' | 'WIRE', what: string, hint: string, cause?: unknown): PenError =>
    new PenError(code, {
      what: `the supervisor of this sandbox ${what}`,
      at: controlPath(stateDir),
      hint,
      cause,
    })
  const reader = answerReader()
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(fail('STATE', 'does not answer', 'pen stop')), timeoutMs)
      socket.attach({
        data: bytes => {
          try {
            const found = reader.push(bytes)
            if (found !== undefined) resolve(found)
          } catch (error) {
            reject(fail('WIRE', 'is another version of pen', 'pen restart', error))
          }
        },
        closed: () => resolve(undefined),
      })
      socket.send(encodeRequest(request))
    })
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

interface ExecConnection {
  readonly socket: ControlStream
  /** Bytes that arrived after the answer. */
  readonly rest: Uint8Array
}

/** Runs a command in the sandbox: the same `Execution` that the supervisor has. */
export function executeOver(
  { socket, rest }: ExecConnection,
  order: ExecOrder,
  output: ExecOutput,
): Execution {
  const reports = new ReportReader()
  const send = (message: Order): void => socket.send(encodeOrder(message))
  const execution = new DaemonExecution(CHANNEL, output, { order: send, room: () => socket.room() })
  const handle = (report: Report): void => {
    if (report.kind === 'ready' || report.kind === 'full' || report.channel !== CHANNEL)
      throw protocolError('a report for another channel')
    if (execution.receive(report)) socket.end()
  }
  const receive = (bytes: Uint8Array): void => {
    try {
      for (const report of reports.push(bytes)) handle(report)
    } catch {
      // The other end is not a supervisor of this version. Ignore everything that follows.
      socket.destroy()
      execution.lose()
    }
  }
  socket.attach({ data: receive, closed: () => execution.lose() })
  const { argv, cwd, env, terminal, joined = false } = order
  send({ kind: 'exec', channel: CHANNEL, order: { argv, cwd, env, terminal, joined } })
  if (rest.length > 0) receive(rest)
  return execution
}
