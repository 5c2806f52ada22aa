/**
 * pen's hand: a container beside the sandbox's, for a user who may ask a daemon of root's for containers and may not enter them.
 * Its only program is pen, on the host's loader, as the agent's is; its image is empty.
 */
import { realpathSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import { isWithin } from '../../policy/path.ts'
import { HAND_MODE } from '../../wire/hand-orders.ts'
import { type Bind, type ContainerOrder, HAND_CAPABILITIES } from './arguments.ts'
import { Container, killNobody } from './container.ts'
import type { Engine } from './engine.ts'
import { withHandImage } from './hand-image.ts'
import { type HandLink, listenForHand } from './hand-link.ts'
import type { InsideDirectory } from './inside-directory.ts'
import { AGENT_PLACE, type AgentProgram } from './loader.ts'
import type { RuntimeChoice } from './runtimes.ts'

export interface HandOptions {
  readonly engine: Engine
  readonly inside: InsideDirectory
  readonly program: AgentProgram
  /** Of the sandbox that it is for. */
  readonly order: Omit<ContainerOrder, 'runtime'>
  readonly spare: string
  readonly runtimes: RuntimeChoice
  readonly cacheDir: string
  readonly undo: UndoStack
}

/** It is no sandbox: whoever lists those does not want it. */
function handLabels({
  'pen.sandbox': sandbox = '',
  ...labels
}: ContainerOrder['labels']): ContainerOrder['labels'] {
  return { ...labels, 'pen.hand': sandbox }
}

/** What will be root on the host is no file that a sandbox could have put there. */
export function refuseWritableProgram({ binds }: AgentProgram, granted: readonly Bind[]): void {
  const writable = granted.filter(({ mode }) => mode === 'rw')
  const within = binds.find(({ from }) => writable.some(tree => isWithin(realpathSync(from), tree.from)))
  if (within === undefined) return
  throw new PenError('BACKEND', {
    what: 'the sandbox may write where pen itself is installed, and the Docker daemon would start that as root',
    at: within.from,
    hint: 'install pen outside of the project and of what you grant to it',
  })
}

/** Resolves when it is there, and sees the host's files as its keeper does. It ends with the keeper at the latest. */
export async function startHand(options: HandOptions): Promise<HandLink> {
  const { engine, inside, program, order: sandbox, spare, runtimes, cacheDir, undo } = options
  const { shown, binds, idFile, pidFile } = inside.makeHand()
  const listener = listenForHand(shown)
  undo.push('hand’s sockets', () => listener.close())
  const order: Omit<ContainerOrder, 'runtime' | 'image'> = {
    ...sandbox,
    // Of this run alone: the engine may still be removing that of the last.
    name: `${spare}-hand`,
    labels: handLabels(sandbox.labels),
    hostname: 'pen-hand',
    hand: true,
    capabilities: HAND_CAPABILITIES,
    network: 'none',
    limits: {},
    scratch: [],
    binds,
    idFile,
    pidFile,
    argv: [...program.words, HAND_MODE, AGENT_PLACE],
  }
  const starting = withHandImage(engine, cacheDir, image =>
    Container.run(engine, { ...order, image }, runtimes, order.name, { killer: killNobody }),
  )
  undo.push('hand', async () => {
    const link = await Promise.race([listener.arrived, starting.then(() => undefined)]).catch(() => undefined)
    const container = await starting.catch(() => undefined)
    link?.close()
    await (link === undefined ? container?.end() : container?.leave())
  })
  const container = await starting
  return await container.whileAlive(listener.arrived)
}
