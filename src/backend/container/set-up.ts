/** Completes a container before anything of its image runs: mounts, the door, and the tools that the policy lists. */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Plan } from '../../plan/plan.ts'
import { INSIDE } from '../../protocol/guest-paths.ts'
import type { Image, StartOptions } from '../backend.ts'
import { NamespaceMounts } from '../mounts/live-mounts.ts'
import type { Container } from './container.ts'
import { goferOf } from './engine/gvisor.ts'
import type { GuestProgram } from './guest-program.ts'
import { type HeldTools, holdTools } from './hold-tools.ts'
import { CONTAINER_EMPTY_FILE } from './inside-directory.ts'
import { layerTrees } from './layer-trees.ts'
import { OwnedTrees } from './owned-trees.ts'
import type { PlanMounts } from './plan-mounts.ts'
import { type RequestedContainer, targetsOf } from './request-container.ts'
import { type HelperAccess, namespaceOf } from './root-helper/access.ts'
import type { Machine } from './shape.ts'
import { type Trees, verifyMounts } from './verify-mounts.ts'

interface SetUpOptions {
  readonly machine: Machine
  readonly plan: Plan
  readonly mounts: PlanMounts
  readonly image: Image
  readonly program: GuestProgram
  readonly options: StartOptions
  readonly requested: RequestedContainer
  readonly trees: Trees
}

export interface Completed {
  readonly held: HeldTools
  readonly live: NamespaceMounts
}

const POLL_MS = 2
const TIMEOUT_MS = 30_000

export async function setUpContainer(
  { machine, plan, mounts, image, program, options, requested, trees }: SetUpOptions,
  container: Container,
  reached: HelperAccess | undefined,
): Promise<Completed> {
  const { gvisor, facts } = machine
  const entrance = () => (gvisor ? goferOf(container.init) : container.init)
  const live = new NamespaceMounts(entrance, {
    emptyFile: CONTAINER_EMPTY_FILE,
    ids: 'many',
    ...(reached !== undefined && { by: { helper: reached.helper, entrance: reached } }),
  })
  requested.undo.push('the mounts', () => live.close())
  await untilEntered(live)
  const openDoor = async (): Promise<void> => {
    const namespace = namespaceOf(container, reached, { userNamespace: facts.rootless })
    const settle = await options.container.openDoor(namespace)
    if (reached !== undefined) requested.undo.push('the network counters', settle)
  }
  await Promise.all([
    verifyMounts({
      init: entrance() ?? container.init,
      mounts: live,
      // Scratch is in gVisor's memory, so only the exec daemon can give it to the user.
      plan: gvisor ? { ...mounts, userDirectories: [] } : mounts,
      own: { from: requested.inside.shown, at: INSIDE },
      user: plan.user,
      trees,
    }),
    openDoor(),
  ])
  const held = await holdTools({
    plan,
    tools: options.rules.policy.tools,
    init: entrance() ?? container.init,
    mounts: live,
    path: image.path,
    binds: [...mounts.binds, ...mounts.layered],
    targets: [...targetsOf(requested.order), ...mounts.layered.map(({ at }) => at)],
    daemon: requested.daemon.connected,
    loader: program.loader,
  })
  return { held, live }
}

/** Detached mounts: for root, trees that the sandbox's user owns, and the parts of a review layer. */
export async function treesFor(
  { gvisor }: Machine,
  plan: Plan,
  { binds, layered }: PlanMounts,
  undo: UndoStack,
): Promise<Trees> {
  if (plan.runAs === 'self')
    return { binds: undefined, layered: await layerTrees(plan, layered, undefined, undo) }
  const { uid, gid } = lstatSync(plan.workspace)
  const owned = new OwnedTrees({ uid, gid }, plan.user, undo, gvisor ? 'swapped' : 'unmapped')
  const isMapped = binds.some(bind => owned.isMapped(bind))
  return {
    binds: isMapped ? binds.map(bind => owned.tree(bind)) : undefined,
    layered: await layerTrees(plan, layered, owned, undo),
  }
}

/**
 * An ordinary user may enter the container only after the runtime, which is protected, has executed the exec daemon.
 */
async function untilEntered(mounts: NamespaceMounts): Promise<void> {
  for (const began = performance.now(); !mounts.ready(); await Bun.sleep(POLL_MS))
    if (performance.now() - began > TIMEOUT_MS)
      throw new PenError('BACKEND', {
        what: 'pen may not enter the container to protect its files and network',
        hint: 'run `pen doctor` to test the engine',
      })
}
