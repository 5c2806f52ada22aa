/**
 * A container whose network the steps of a Docker build join. The daemon's builder can join only the namespace of a
 * container. Its only program is the exec daemon, which waits and ends with pen. Its image is empty. pen opens the door
 * in it as in a sandbox.
 */
import { existsSync, readFileSync } from 'node:fs'
import { newRunId } from '../../audit/segment-name.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import type { MadeNamespace, StartOptions } from '../backend.ts'
import type { Engine } from './engine/engine.ts'
import { engineFacts } from './engine/engine-facts.ts'
import { chooseRuntime } from './engine/runtimes.ts'
import { guestProgram } from './guest-program.ts'
import { requestContainer } from './request-container.ts'
import { namespaceOf } from './root-helper/access.ts'
import { withRootHelperImage } from './root-helper/image.ts'
import type { Shape } from './shape.ts'
import { hardLimits } from './shape.ts'

export interface BuildContainer {
  readonly id: string
  readonly namespace: MadeNamespace
  release(): Promise<void>
}

export interface BuildContainerOptions {
  readonly engine: Engine
  readonly sandbox: StartOptions['sandbox']
  readonly cacheDir: string
  /** Use the daemon's open network instead of an empty one. */
  readonly open: boolean
}

export async function startBuildContainer({
  engine,
  sandbox,
  cacheDir,
  open,
}: BuildContainerOptions): Promise<BuildContainer> {
  const [facts, program] = await Promise.all([engineFacts(engine, cacheDir), guestProgram(cacheDir)])
  const runtimes = chooseRuntime('default', facts, engine.name, cacheDir)
  let { run } = sandbox
  return await withRootHelperImage(engine, cacheDir, async image => {
    const shape = shapeOf(engine, image, open)
    const requested = await requestContainer({
      shape,
      program,
      sandbox: { ...sandbox, run },
      runtimes,
      cacheDir,
    })
    // A second try has other names: the engine may still be removing the containers of the first.
    run = newRunId()
    const { pending, reach, undo, inside, daemon } = requested
    try {
      const container = await pending
      const reached = await reach(container)
      await container.whileAlive(daemon.connected)
      return {
        id: readFileSync(inside.idFile, 'utf8').trim(),
        namespace: namespaceOf(container, reached, { userNamespace: false }),
        release: () => undo.unwind(),
      }
    } catch (error) {
      await undo.unwind()
      throw error
    }
  })
}

function shapeOf(engine: Engine, image: string, open: boolean): Shape {
  const hard = hardLimits()
  return {
    engine,
    files: [],
    points: [],
    shows: !isHostRoot(),
    order: {
      engine: engine.name,
      rootless: false,
      runtimeFlags: [],
      capabilities: [],
      helper: false,
      verb: 'run',
      image,
      hostname: 'pen-build',
      user: { uid: 0, gid: 0 },
      network: open ? 'bridge' : 'none',
      // Processes that join its network use its name server too.
      doorNames: !open,
      limits: {},
      ulimits: { nofile: Math.min(1024, hard.nofile), nproc: Math.min(1024, hard.nproc), core: 0 },
      scratch: [],
      binds: [],
      env: { AGENT_IN_SANDBOX: '1' },
      selinux: existsSync('/sys/fs/selinux/enforce'),
    },
  }
}
