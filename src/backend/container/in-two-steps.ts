/**
 * A container that is made first and started later, for a runtime that looks at its mounts when it starts. Meanwhile a shell waits
 * for pen's word: when pen is gone instead, it takes the container away, which nothing else would.
 */
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { type Captured, capture } from '../../base/spawn.ts'
import { type ContainerOrder, runArguments, runtimeArguments } from './arguments.ts'
import { type Engine, tryEngine } from './engine.ts'

/** Says the word: true to start it, false to take it away. */
export type Release = Promise<boolean>

const TIME_LIMIT_MS = 60_000

/** The engine's words are "$@", the container is $0. */
const SCRIPT = `"$@" init "$0" >/dev/null && read -r go && exec "$@" start "$0" >/dev/null
code=$?
"$@" rm --force --time=0 --ignore "$0" >/dev/null 2>&1
exit "$code"`

export async function inTwoSteps(
  engine: Engine,
  order: ContainerOrder,
  idOf: () => string | undefined,
  release: Release,
): Promise<Captured> {
  const made = await tryEngine(engine, runArguments(order))
  const id = made.code === 0 ? idOf() : undefined
  if (id === undefined) return made
  const shell = findTool('sh')
  if (shell === undefined) throw new PenError('MISSING_TOOL', { what: 'there is no sh on this machine' })
  const words = [engine.program, ...engine.flags, ...runtimeArguments(order)]
  return await capture([shell, '-c', SCRIPT, id, ...words], {
    env: { ...engine.env },
    cwd: '/',
    timeoutMs: TIME_LIMIT_MS,
    input: release.then(go => (go ? 'go\n' : '')),
  })
}
