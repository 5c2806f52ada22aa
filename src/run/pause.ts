/**
 * The socket of a run with a review layer: its sandbox is paused while a client is connected. Every run has one, because `pen run` and
 * `pen agent` have no control socket. The directory is the user's alone, and the kernel names the user of each client.
 */
import { rmSync } from 'node:fs'
import { canBePaused } from '../backend/backend.ts'
import { PenError } from '../base/error.ts'
import { ANSWER_TIMEOUT_MS, addressOf } from '../control/address.ts'
import { connect } from '../control/client.ts'
import { ControlSocket } from '../control/socket.ts'
import type { Supervised } from './supervision/supervisor.ts'

/** A client that needs longer gets no consistent copy. */
const MOST_MS = 60_000
/** The two answers: the sandbox is paused; pen cannot pause it. */
const PAUSED = 'y'
const CANNOT = 'n'

type WhilePaused = (act: () => Promise<void>) => Promise<void>

const socketPath = (stateDir: string): string => `${stateDir}/review.pause`

/** The caller holds the lock of the layer: a socket that is there is a killed run's. Returns a function that closes it. */
export function servePauses({
  prepared,
  running,
  limits,
}: Pick<Supervised, 'prepared' | 'running' | 'limits'>): () => void {
  const path = socketPath(prepared.loaded.project.stateDir)
  const whilePaused: WhilePaused | undefined = canBePaused(running)
    ? act => limits.whileCopied(act)
    : undefined
  rmSync(path, { force: true })
  const address = addressOf(path)
  const listener = ControlSocket.listen(address.path, socket => void serve(socket, whilePaused))
  return () => {
    listener.stop(true)
    rmSync(path, { force: true })
    address.close()
  }
}

async function serve(socket: ControlSocket, whilePaused: WhilePaused | undefined): Promise<void> {
  if (!socket.isOurUser) {
    socket.destroy()
    return
  }
  if (whilePaused === undefined) {
    socket.send(Buffer.from(CANNOT))
    socket.end()
    return
  }
  const gone = Promise.withResolvers<void>()
  let isPaused = false
  socket.attach({
    // The client asks whether the pause still holds.
    data: () => (isPaused ? socket.send(Buffer.from(PAUSED)) : socket.destroy()),
    closed: () => gone.resolve(),
  })
  const late = setTimeout(() => socket.destroy(), MOST_MS)
  try {
    const ended: Promise<void> = whilePaused(async () => {
      isPaused = true
      socket.send(Buffer.from(PAUSED))
      await gone.promise
    })
    await ended
  } catch {
    // The kernel refused to pause the sandbox. The client sees that the connection is closed.
    socket.destroy()
  } finally {
    clearTimeout(late)
  }
}

export interface Pause {
  /** Whether the sandbox was paused until now. */
  holds(): Promise<boolean>
  end(): void
}

/** Undefined when no run with this layer listens. */
export async function pauseForCopy(stateDir: string): Promise<Pause | undefined> {
  const socket = await connect(stateDir, socketPath(stateDir))
  if (socket === undefined) return undefined
  const answers = new Answers(socket)
  const answer = await answers.next()
  if (answer === CANNOT)
    throw new PenError('STATE', {
      what: 'pen cannot pause the programs of this sandbox, and they could write while it copies',
      hint: 'end it (pen stop), then try again',
    })
  if (answer !== PAUSED) return undefined
  return {
    holds: async () => {
      socket.send(Buffer.from(PAUSED))
      return (await answers.next()) === PAUSED
    },
    end: () => socket.end(),
  }
}

/** One byte each. Undefined when the connection is closed, or no answer comes. */
class Answers {
  readonly #socket: ControlSocket
  #next = Promise.withResolvers<string | undefined>()

  constructor(socket: ControlSocket) {
    this.#socket = socket
    socket.attach({
      data: bytes => this.#next.resolve(String.fromCharCode(bytes[0] ?? 0)),
      closed: () => this.#next.resolve(undefined),
    })
  }

  async next(): Promise<string | undefined> {
    const late = setTimeout(() => this.#socket.destroy(), ANSWER_TIMEOUT_MS)
    const answer = await this.#next.promise
    clearTimeout(late)
    if (answer !== undefined) this.#next = Promise.withResolvers()
    return answer
  }
}
