/**
 * Tests whether podman can start a container here. It runs a program of the host in a temporary root directory, so no
 * image is needed. Docker's daemon needs an image, so pen only asks whether it answers.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { dirname } from '../../../base/posix-path.ts'
import { mountField, runtimeArguments } from '../arguments.ts'
import { programOf } from '../guest-program.ts'
import { type Engine, engineError, tryEngine } from './engine.ts'
import type { EngineFacts } from './engine-facts.ts'
import { GVISOR_RUNTIME, gvisorFlags } from './gvisor.ts'
import { chooseRuntime, isRuntimeFailure } from './runtimes.ts'

const TIME_LIMIT_MS = 20_000
/** The engine would make these as another uid, and pen could not remove them. */
const DIRECTORIES = ['proc', 'sys', 'dev', 'etc', 'run', 'tmp']

export interface Trial {
  /** Undefined is the engine's default. */
  readonly runtime: string | undefined
}

/** A program of the host and its arguments. */
interface TrialOptions {
  readonly tool: string
  readonly words: readonly string[]
  /** Use gVisor, with pen's flags. */
  readonly gvisor: boolean
}

const NOTHING_DONE: TrialOptions = { tool: 'true', words: [], gvisor: false }

/** `scratch` is a directory of the caller. It is empty again afterwards. */
export async function tryPodman(
  engine: Engine,
  facts: EngineFacts,
  scratch: string,
  { tool, words: more, gvisor } = NOTHING_DONE,
): Promise<Trial> {
  const program = findTool(tool)
  if (program === undefined) throw new PenError('MISSING_TOOL', { what: `\`${tool}\` is missing` })
  const root = `${scratch}/root-${process.pid}`
  const runtimeFlags = gvisor ? await gvisorFlags() : []
  try {
    const { binds, words } = await programOf(program)
    for (const name of DIRECTORIES) mkdirSync(`${root}/${name}`, { recursive: true })
    writeFileSync(`${root}/etc/hostname`, '')
    for (const { at } of binds) {
      mkdirSync(dirname(`${root}${at}`), { recursive: true })
      writeFileSync(`${root}${at}`, '')
    }
    const [entry, ...rest] = words
    const argv = [
      ...['run', '--rm', '--network=none', '--read-only', '--read-only-tmpfs=false', '--no-hosts'],
      ...['--passwd=false', '--ipc=none', '--cap-drop=ALL', '--security-opt=no-new-privileges'],
      ...['--log-driver=none', '--ulimit=nofile=64:64', '--ulimit=nproc=64:64', '--workdir=/'],
      ...(facts.rootless ? ['--userns=keep-id'] : []),
      ...binds.flatMap(({ from, at }) => [
        '--mount',
        mountField(['type=bind', ['source', from], ['target', at], 'readonly']),
      ]),
      ...[`--entrypoint=${entry}`, '--rootfs', root, ...rest, ...more],
    ]
    const named = gvisor ? GVISOR_RUNTIME : 'default'
    for (const runtime of chooseRuntime(named, facts, 'podman', scratch).candidates) {
      const flags = runtimeArguments({ engine: 'podman', runtime, runtimeFlags })
      const answer = await tryEngine(engine, [...flags, ...argv], { timeoutMs: TIME_LIMIT_MS })
      if (answer.code === 0) return { runtime }
      if (!isRuntimeFailure(answer)) throw engineError(engine, answer)
    }
    throw new PenError('BACKEND', {
      what: 'no OCI runtime can start a container here',
      hint: gvisor ? 'use isolation "container"' : 'install runc or crun, or use the process backend',
    })
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
