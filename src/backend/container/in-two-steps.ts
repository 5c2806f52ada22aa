/**
 * A container that is made first and started later, for a runtime that looks at its mounts when it starts. Meanwhile a shell waits
 * for pen's word: when pen is gone instead, it takes the container away, which nothing else would.
 */
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { type Captured, capture } from '../../base/spawn.ts'
import { type ContainerOrder, runArguments, runtimeArguments } from './arguments.ts'
import type { Engine } from './engine/engine.ts'

/** Says the word: true to start it, false to take it away. */
export type Release = Promise<boolean>

const TIME_LIMIT_MS = 60_000

/**
 * $0 is the file with the container's id, "$@" the whole order to make it, behind the number of words that are the engine's own and
 * begin every other order too. What a terminal sends to all is for pen: it decides, or its end does.
 */
const SCRIPT = `trap '' HUP INT TERM
own=$1; shift
"$@" >/dev/null || exit
for word do
  shift
  [ "$own" -le 0 ] || set -- "$@" "$word"
  own=$((own - 1))
done
read -r id <"$0"
"$@" init "$id" >/dev/null && read -r go && exec "$@" start "$id" >/dev/null
code=$?
"$@" rm --force --time=0 --ignore "$id" >/dev/null 2>&1
exit "$code"`

export async function inTwoSteps(engine: Engine, order: ContainerOrder, release: Release): Promise<Captured> {
  const shell = findTool('sh')
  if (shell === undefined) throw new PenError('MISSING_TOOL', { what: 'there is no sh on this machine' })
  const own = [engine.program, ...engine.flags]
  const count = own.length + runtimeArguments(order).length
  return await capture([shell, '-c', SCRIPT, order.idFile, `${count}`, ...own, ...runArguments(order)], {
    env: { ...engine.env },
    cwd: '/',
    timeoutMs: TIME_LIMIT_MS,
    input: release.then(go => (go ? 'go\n' : '')),
  })
}
