/** A container that waits to begin, as the keeper sees it. */
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { AgentLink } from '../agent-link.ts'
import type { Ending, Execution, LiveMounts, Running } from '../backend.ts'
import type { Container } from './container.ts'

export interface WaitingContainer {
  readonly container: Container
  readonly mounts: LiveMounts
  readonly undo: UndoStack
  /** The host's directory that it sees at `/run/pen`. */
  readonly inside: string
  readonly notes: readonly string[]
  /** Sets the agent up: from then on it takes orders. */
  readonly connect: () => AgentLink
  /** When it does, before the first. */
  readonly onReady: () => void
}

const LOOK_MS = 100

export function runningContainer(waiting: WaitingContainer): Running {
  const { container, undo } = waiting
  const executions = new Set<Execution>()
  let link: AgentLink | undefined
  let failure: unknown
  let killed = false
  const over = Promise.withResolvers<void>()
  const readiness = Promise.withResolvers<void>()
  readiness.promise.catch(() => undefined)
  // Before it has begun nothing else tells that it is gone.
  const timer = setInterval(() => container.isAlive() || over.resolve(), LOOK_MS)
  const kill = (): void => {
    killed = true
    container.kill()
    over.resolve()
  }
  const ended = over.promise.then(async (): Promise<Ending> => {
    clearInterval(timer)
    try {
      await container.end()
    } finally {
      link?.close()
      await undo.unwind()
    }
    if (failure !== undefined) throw failure
    return killed ? { kind: 'killed' } : { kind: 'exit', code: 0 }
  })
  ended.catch(() => undefined)
  return {
    begin: () => {
      clearInterval(timer)
      link = waiting.connect()
      void link.closed.then(over.resolve, over.resolve)
      link.ready.then(waiting.onReady).then(readiness.resolve, (error: unknown) => {
        if (!killed) failure ??= error
        readiness.reject(error)
        over.resolve()
      })
    },
    ready: readiness.promise,
    exec: (order, output) => {
      if (link === undefined) throw new PenError('INTERNAL', { what: 'the container has not begun' })
      const execution = link.exec(order, output)
      executions.add(execution)
      void execution.ended.finally(() => executions.delete(execution)).catch(() => undefined)
      return execution
    },
    inside: waiting.inside,
    notes: waiting.notes,
    ended,
    initPid: () => container.init,
    kill,
    signal: name => {
      for (const execution of executions) execution.signal(name)
    },
    mounts: waiting.mounts,
  }
}
