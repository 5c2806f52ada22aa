/**
 * Starts the root helper, for a user who may use a root Docker daemon and may not enter its containers. Its only
 * program is pen, on the host's loader, as for the exec daemon. Its image is empty.
 */
import { realpathSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import type { UndoStack } from '../../../base/undo.ts'
import { isWithin } from '../../../policy/files/path.ts'
import { ROOT_HELPER_MODE } from '../../../protocol/root-helper-orders.ts'
import { type Bind, type ContainerOrder, ROOT_HELPER_CAPABILITIES } from '../arguments.ts'
import { Container, cannotKill } from '../container.ts'
import type { Engine } from '../engine/engine.ts'
import type { RuntimeChoice } from '../engine/runtimes.ts'
import { DAEMON_DIRECTORY, type GuestProgram } from '../guest-program.ts'
import type { InsideDirectory } from '../inside-directory.ts'
import { withRootHelperImage } from './image.ts'
import { listenForRootHelper, type RootHelperLink } from './link.ts'

export interface RootHelperOptions {
  readonly engine: Engine
  readonly inside: InsideDirectory
  readonly program: GuestProgram
  /** The order for the sandbox's container. */
  readonly order: Omit<ContainerOrder, 'runtime'>
  readonly fallbackName: string
  readonly runtimes: RuntimeChoice
  readonly cacheDir: string
  readonly undo: UndoStack
}

/** The helper is not a sandbox, so lists of sandboxes must not show it. */
function helperLabels({
  'pen.sandbox': sandbox = '',
  ...labels
}: ContainerOrder['labels']): ContainerOrder['labels'] {
  return { ...labels, 'pen.helper': sandbox }
}

/** The program runs as root on the host, so a sandbox must not be able to write its file. */
export function refuseWritableProgram({ binds }: GuestProgram, granted: readonly Bind[]): void {
  const writable = granted.filter(({ mode }) => mode === 'rw')
  const within = binds.find(({ from }) => writable.some(tree => isWithin(realpathSync(from), tree.from)))
  if (within === undefined) return
  throw new PenError('BACKEND', {
    what: 'the sandbox may write to pen’s own program, which the Docker daemon would start as root',
    at: within.from,
    hint: 'install pen outside of the project and outside of granted directories',
  })
}

/**
 * Resolves when the helper runs and sees the host's files as the supervisor does. It ends with the supervisor at the
 * latest.
 */
export async function startRootHelper(options: RootHelperOptions): Promise<RootHelperLink> {
  const { engine, inside, program, order: sandbox, fallbackName, runtimes, cacheDir, undo } = options
  const { shown, binds, idFile, pidFile } = inside.makeHelperDirectory()
  const listener = listenForRootHelper(shown)
  undo.push('the root helper’s sockets', () => listener.close())
  const order: Omit<ContainerOrder, 'runtime' | 'image'> = {
    ...sandbox,
    // A name of this run alone: the engine may still be removing the last helper.
    name: `${fallbackName}-helper`,
    labels: helperLabels(sandbox.labels),
    hostname: 'pen-helper',
    helper: true,
    capabilities: ROOT_HELPER_CAPABILITIES,
    network: 'none',
    limits: {},
    scratch: [],
    binds,
    idFile,
    pidFile,
    argv: [...program.words, ROOT_HELPER_MODE, DAEMON_DIRECTORY],
  }
  const starting = withRootHelperImage(engine, cacheDir, image =>
    Container.run(engine, { ...order, image }, runtimes, order.name, { killer: cannotKill }),
  )
  undo.push('the root helper', async () => {
    const link = await Promise.race([listener.arrived, starting.then(() => undefined)]).catch(() => undefined)
    const container = await starting.catch(() => undefined)
    link?.close()
    await (link === undefined ? container?.end() : container?.leave())
  })
  const container = await starting
  return await container.whileAlive(listener.arrived)
}
