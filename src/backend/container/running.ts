/** A container that waits to begin, as the supervisor sees it. */
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Ending, LiveMounts, Running } from '../backend.ts'
import type { DaemonLink } from '../daemon-link.ts'
import type { Container } from './container.ts'
import type { HelperAccess } from './root-helper/access.ts'
import { lostRootHelper } from './root-helper/link.ts'

export interface WaitingContainer {
  readonly container: Container
  readonly mounts: LiveMounts
  readonly undo: UndoStack
  /** The host's directory that the container sees at `/run/pen`. */
  readonly inside: string
  readonly notes: readonly string[]
  /** Resolves when the exec daemon has connected. */
  readonly link: Promise<DaemonLink>
  /** The error to report when the exec daemon ended before it was ready. */
  readonly notReady: (error: unknown) => unknown
  /** Called when the exec daemon accepts orders, before the first. */
  readonly onReady: () => Promise<void>
  /** gVisor. */
  readonly ownKernel: boolean
  /** Undefined when pen may enter the container itself. */
  readonly reached: HelperAccess | undefined
}

export function runningContainer(waiting: WaitingContainer): Running {
  const { container, undo, reached } = waiting
  let failure: unknown
  let killed = false
  let isOver: boolean = false
  const over = Promise.withResolvers<void>()
  const readiness = Promise.withResolvers<void>()
  readiness.promise.catch(() => undefined)
  // Without the root helper pen can hold no more places, so the sandbox ends too.
  void reached?.helper.closed.then(() => {
    // After the sandbox's end the root helper ends as planned.
    if (!isOver) failure ??= lostRootHelper()
    over.resolve()
  })
  const kill = (): void => {
    killed = true
    container.kill()
    over.resolve()
  }
  const ended = over.promise.then(async (): Promise<Ending> => {
    isOver = true
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
  let link: DaemonLink | undefined
  const pending = waiting.link.then(daemonLink => {
    link = daemonLink
    void daemonLink.closed.then(over.resolve, over.resolve)
    return daemonLink.ready
  })
  pending.catch(() => undefined)
  const full = waiting.link.then(daemonLink => daemonLink.full)
  full.catch(() => undefined)
  return {
    begin: () =>
      void pending.then(waiting.onReady).then(readiness.resolve, (error: unknown) => {
        const why = waiting.notReady(error)
        if (!killed) failure ??= why
        readiness.reject(why)
        over.resolve()
      }),
    ready: readiness.promise,
    exec: (order, output) => {
      if (link === undefined)
        throw new PenError('INTERNAL', { what: 'the exec daemon has not connected yet' })
      return link.exec(order, output)
    },
    full,
    inside: waiting.inside,
    notes: waiting.notes,
    ended,
    ...(waiting.ownKernel && { ownKernel: true }),
    initPid: () => container.init,
    ...(reached !== undefined && {
      network: { kind: 'by-helper', network: reached.network, helper: reached.helper },
      reach: { root: `/proc/self/fd/${reached.root}`, kill: () => container.kill() },
    }),
    kill,
    signal: name => link?.signal(name),
    mounts: waiting.mounts,
  }
}
