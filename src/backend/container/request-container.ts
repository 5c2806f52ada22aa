/**
 * Requests a container from the engine. Its only program is the exec daemon, which runs on the host's loader and waits
 * for its setup. So nothing of the image runs before the container is set up.
 */
import { UndoStack } from '../../base/undo.ts'
import { DAEMON_MODE } from '../../protocol/guest-paths.ts'
import type { StartOptions } from '../backend.ts'
import { type DaemonListener, listenForDaemon } from '../daemon-socket.ts'
import { requireMountPoints } from '../mounts/mount-points.ts'
import type { ContainerOrder } from './arguments.ts'
import { Container, cannotKill, removeOrphans } from './container.ts'
import type { Release } from './create-then-start.ts'
import type { RuntimeChoice } from './engine/runtimes.ts'
import type { GuestProgram } from './guest-program.ts'
import { DAEMON_SOCKET, type InsideDirectory, makeInside, SHOWN_SOCKET } from './inside-directory.ts'
import { beginAccess, type HelperAccess } from './root-helper/access.ts'
import type { Shape } from './shape.ts'
import { SUPERVISOR_LABEL, supervisorLabel } from './supervisor-label.ts'

export type Sandbox = StartOptions['sandbox']

/** What exists before the container is requested. */
interface PreparedContainer {
  readonly inside: InsideDirectory
  readonly daemon: DaemonListener
  readonly order: Omit<ContainerOrder, 'runtime'>
  /** The name to use when the first one is taken. */
  readonly fallbackName: string
  /** Removes all of this, and the container. */
  readonly undo: UndoStack
}

export interface RequestedContainer extends PreparedContainer {
  readonly pending: Promise<Container>
  /** Waits for the root helper. Undefined when pen may enter the container itself. */
  readonly reach: (container: Container) => Promise<HelperAccess | undefined>
  /** Takes the container off the undo stack. The caller then ends it. */
  readonly disarm: () => void
}

interface ContainerRequest {
  readonly shape: Shape
  readonly program: GuestProgram
  readonly sandbox: Sandbox
  readonly runtimes: RuntimeChoice
  readonly cacheDir: string
  /** For an order to `create`: resolves when the container may start. */
  readonly release?: Release | undefined
}

export async function requestContainer(request: ContainerRequest): Promise<RequestedContainer> {
  const { shape, program, sandbox, runtimes, cacheDir, release } = request
  const { engine, shows } = shape
  const undo = new UndoStack()
  try {
    const prepared = prepareContainer(request, undo)
    const access = shows ? beginAccess({ engine, program, runtimes, cacheDir, ...prepared }) : undefined
    const removal = removeOrphans(
      engine,
      prepared.inside.abandoned.flatMap(run => [nameOf(sandbox, run), `${nameOf(sandbox, run)}-helper`]),
    )
    // A failure is reported when the stack unwinds.
    removal.catch(() => undefined)
    undo.push('containers of earlier runs', () => removal)
    const pending = Container.run(engine, prepared.order, runtimes, prepared.fallbackName, {
      release,
      ...(shows && { killer: cannotKill }),
    })
    const disarm = undo.push('the container', async () => {
      const container = await pending.catch(() => undefined)
      await container?.end()
    })
    return { ...prepared, pending, reach: async container => await access?.(container), disarm }
  } catch (error) {
    await undo.unwind()
    throw error
  }
}

function prepareContainer(
  { shape, program, sandbox }: Pick<ContainerRequest, 'shape' | 'program' | 'sandbox'>,
  undo: UndoStack,
): PreparedContainer {
  const { id, run, stateDir } = sandbox
  const inside = makeInside({
    stateDir,
    run,
    program: program.binds,
    files: shape.files,
    points: shape.points,
  })
  undo.push('the run directory', () => inside.remove())
  const daemon = listenForDaemon(inside.socket)
  undo.push('the exec daemon’s socket', () => daemon.close())
  const order: PreparedContainer['order'] = {
    ...shape.order,
    name: `pen-${id}`,
    labels: { pen: '1', 'pen.sandbox': id, 'pen.run': run, [SUPERVISOR_LABEL]: supervisorLabel() },
    binds: [...shape.order.binds, ...inside.binds],
    idFile: inside.idFile,
    pidFile: inside.pidFile,
    argv: [
      ...program.words,
      DAEMON_MODE,
      ...(shape.shows ? [`show:${SHOWN_SOCKET}`] : []),
      `unix:${DAEMON_SOCKET}`,
    ],
  }
  requireMountPoints(targetsOf(order), shape.order.binds)
  return { inside, daemon, order, fallbackName: nameOf(sandbox, run), undo }
}

/** A name that only this run uses. */
const nameOf = ({ id }: Sandbox, run: string): string => `pen-${id}-${run}`

/** Every path inside that has a mount. */
export const targetsOf = ({ binds, scratch }: Pick<ContainerOrder, 'binds' | 'scratch'>): string[] =>
  [...binds, ...scratch].map(({ at }) => at)
